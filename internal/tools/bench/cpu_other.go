//go:build !unix

package bench

import (
	"time"

	"tutti/internal/core"
)

// usedCPU is not supported on this operating system.
func usedCPU() (user, system time.Duration, err error) {
	return 0, 0, core.NewError(core.CodeUnsupported, "the CPU time of a process is not known on this system")
}
