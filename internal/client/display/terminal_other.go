//go:build !unix

package display

import "os"

// isTerminal always reports false: redrawing is not supported on this operating system.
func isTerminal(*os.File) bool { return false }

// sizeOf always returns 0.
func sizeOf(*os.File) (columns, rows int) { return 0, 0 }
