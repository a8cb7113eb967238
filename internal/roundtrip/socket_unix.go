//go:build unix

package roundtrip

import (
	"errors"
	"syscall"
)

// nothingToRead reports whether a read of the socket would block: there is neither data nor an end of file. Go's sockets are non-blocking.
func nothingToRead(socket syscall.RawConn) bool {
	var failed error
	var one [1]byte
	err := socket.Read(func(fd uintptr) bool {
		_, failed = syscall.Read(int(fd), one[:])
		return true
	})
	return err == nil && (errors.Is(failed, syscall.EAGAIN) || errors.Is(failed, syscall.EWOULDBLOCK))
}
