//go:build unix

package roundtrip

import (
	"errors"
	"syscall"
)

// silent reports whether there is nothing to be read of a socket, not even its end. Sockets of Go do not wait.
func silent(socket syscall.RawConn) bool {
	var failed error
	var one [1]byte
	err := socket.Read(func(fd uintptr) bool {
		_, failed = syscall.Read(int(fd), one[:])
		return true
	})
	return err == nil && (errors.Is(failed, syscall.EAGAIN) || errors.Is(failed, syscall.EWOULDBLOCK))
}
