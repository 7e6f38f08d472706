package service

import (
	"net"
	"os"
	"strings"
)

// notify tells the service manager a state ("READY=1") through the socket NOTIFY_SOCKET names.
// Without one it does nothing; a manager that does not listen is no reason to fail.
func notify(state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	if strings.HasPrefix(socket, "@") {
		socket = "\x00" + socket[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}
