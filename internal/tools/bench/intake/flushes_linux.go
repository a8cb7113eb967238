package intake

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"tutti/internal/core"
)

// flushes returns how often the disk that holds a folder was flushed by all processes, from /proc/diskstats.
func flushes(dir string) (float64, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return 0, core.WrapError(core.CodeInternal, "asking for the disk of "+dir, err)
	}
	statistics, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return 0, core.WrapError(core.CodeUnavailable, "reading the statistics of the disks", err)
	}
	// The numbers of the device: https://man7.org/linux/man-pages/man3/makedev.3.html
	major, minor := stat.Dev>>8&0xfff|stat.Dev>>32&^0xfff, stat.Dev&0xff|stat.Dev>>12&0xffffff00
	const flushField = 18 // https://www.kernel.org/doc/Documentation/admin-guide/iostats.rst, field 16 after three names
	for line := range strings.Lines(string(statistics)) {
		fields := strings.Fields(line)
		if len(fields) > flushField && fields[0] == fmt.Sprint(major) && fields[1] == fmt.Sprint(minor) {
			return strconv.ParseFloat(fields[flushField], 64)
		}
	}
	return 0, core.NewError(core.CodeUnavailable, "no disk holds the folder of the benchmark")
}
