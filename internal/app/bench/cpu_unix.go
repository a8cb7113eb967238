//go:build unix

package bench

import (
	"syscall"
	"time"

	"tutti/internal/core"
)

// usedCPU returns the CPU time that this process has used, in its own code and in the system.
func usedCPU() (user, system time.Duration, err error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, 0, core.WrapError(core.CodeInternal, "asking for the CPU time", err)
	}
	return time.Duration(used.Utime.Nano()), time.Duration(used.Stime.Nano()), nil
}
