package frontdoor

import (
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// drain takes up to n bytes off a socket, at least one, and throws them away. TCP of Linux does so without
// copying them.
func drain(sock net.Conn, n int) (taken int, err error) {
	tcp, ok := sock.(*net.TCPConn)
	if !ok {
		return drainRead(sock, n)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno unix.Errno
	err = raw.Read(func(fd uintptr) bool {
		taken, errno = truncate(fd, n)
		return errno != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return drainRead(sock, n) // it may be more able, or says what is wrong
	case taken == 0:
		return 0, io.EOF
	}
	return taken, nil
}

// truncate receives up to n bytes into nothing.
func truncate(fd uintptr, n int) (int, unix.Errno) {
	for {
		got, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, 0, uintptr(n), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(got), errno
		}
	}
}
