//go:build !unix

package direct

import (
	"time"

	"tutti/internal/core"
)

// UsedCPU is not supported on this operating system.
func UsedCPU() (user, system time.Duration, err error) {
	return 0, 0, core.NewError(core.CodeUnsupported, "the CPU time of a process is not known on this system")
}
