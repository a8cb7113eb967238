//go:build !unix

package display

import "os"

// isTerminal is false: how to draw on a terminal of this system is not known, and plain lines always work.
func isTerminal(*os.File) bool { return false }

// sizeOf knows nothing here.
func sizeOf(*os.File) (columns, rows int) { return 0, 0 }
