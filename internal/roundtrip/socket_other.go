//go:build !unix

package roundtrip

import "syscall"

// nothingToRead always reports true: a connection that the server closed is noticed when the next request gets no response.
func nothingToRead(syscall.RawConn) bool { return true }
