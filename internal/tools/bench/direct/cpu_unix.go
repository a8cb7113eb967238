//go:build unix

package direct

import (
	"syscall"
	"time"

	"tutti/internal/core"
)

// UsedCPU returns the CPU time of this process in user and system mode.
func UsedCPU() (user, system time.Duration, err error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, 0, core.WrapError(core.CodeInternal, "asking for the CPU time", err)
	}
	return time.Duration(used.Utime.Nano()), time.Duration(used.Stime.Nano()), nil
}
