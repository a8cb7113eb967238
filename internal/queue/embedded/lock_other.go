//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package embedded

import (
	"errors"
	"os"
)

// lockFile refuses: two processes on one data folder would ruin it, and this system offers no lock that ends with its
// process.
func lockFile(*os.File) error {
	return errors.New("this operating system offers no file locks")
}
