//go:build !(linux || darwin)

package check

// freeSpace reports false: it is not implemented on this system.
func freeSpace(string) (uint64, bool) { return 0, false }
