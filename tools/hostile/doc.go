// Package hostile attacks a real server process and watches what that does to everybody else.
//
// Bad clients send frames of every wrong size and kind, stop in the middle, never read, come by the
// thousand, or are simply too many. Beside them good clients produce and consume all the time: they
// must see no error, the process must stay within the memory it was given, and after a restart every
// acknowledged message is there. Nothing here looks inside the server.
package hostile
