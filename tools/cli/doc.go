// Package cli is the whippet command: everything a person or a script asks a server for.
//
// It owns contexts (named servers with credentials, in a file of the user), flags, output as tables
// or JSON, and exit codes. It talks to the server through tools/client only.
//
// Every command is a function from a connection and arguments to a result; the frame around it
// connects, prints and turns errors into exit codes, so that a command cannot do these differently.
package cli
