//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package embedded

import (
	"errors"
	"os"
)

// LockFile returns an error: two processes must not use one data folder, and this system has no lock that ends with
// its process.
func LockFile(*os.File) error {
	return errors.New("this operating system offers no file locks")
}

// UnlockFile does nothing: closing the file releases the lock.
func UnlockFile(*os.File) error { return nil }
