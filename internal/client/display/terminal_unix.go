//go:build unix

package display

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether f is a terminal: only terminals have a size.
func isTerminal(f *os.File) bool {
	_, err := winsize(f)
	return err == nil
}

// sizeOf returns the columns and rows of a terminal, 0 when unknown.
func sizeOf(f *os.File) (columns, rows int) {
	size, err := winsize(f)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

// winsize does not use f.Fd, which would make the file block.
func winsize(f *os.File) (*unix.Winsize, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var size *unix.Winsize
	var asked error
	if err := raw.Control(func(fd uintptr) { size, asked = unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ) }); err != nil {
		return nil, err
	}
	return size, asked
}
