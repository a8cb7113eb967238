//go:build !unix

package server

import "math"

// maxFiles returns how many files this process may have open, which is not known on this operating system.
func maxFiles() int { return math.MaxInt32 }
