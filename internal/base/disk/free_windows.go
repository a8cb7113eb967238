package disk

import (
	"math"

	"golang.org/x/sys/windows"
)

// FreeBytes returns the free space of the file system of dir, and whether it is known.
func FreeBytes(dir string) (free int64, known bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var available uint64
	if err := windows.GetDiskFreeSpaceEx(path, &available, nil, nil); err != nil {
		return 0, false
	}
	return int64(min(available, math.MaxInt64)), true
}
