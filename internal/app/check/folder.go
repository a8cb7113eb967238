package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"tutti/internal/base/disk"
)

// lowSpace is the free space, in bytes, below which a folder is a warning; minSpace the one below which it is an error.
const (
	lowSpace = 1 << 30
	minSpace = 64 << 20
)

// folder checks a subfolder of the data folder. lockFile is the file in it that a running tutti locks.
func folder(subject, dir, lockFile string) Finding {
	if pid, held := disk.LockHolder(filepath.Join(dir, lockFile)); held {
		return Finding{subject, StatusOK, fmt.Sprintf("embedded; %s is in use by a running tutti (process %d)", dir, pid), ""}
	}
	at, info, err := nearestExisting(dir)
	switch {
	case err != nil:
		return Finding{subject, StatusFail, fmt.Sprintf("%s cannot be read: %s", dir, cause(err)), "grant tutti's user read access, or choose another dataDir"}
	case !info.IsDir():
		return Finding{subject, StatusFail, at + " is not a folder", "remove it, or choose another dataDir"}
	}
	if err := writable(at); err != nil {
		return Finding{subject, StatusFail, fmt.Sprintf("%s cannot be written: %s", at, cause(err)), "grant tutti's user write access, or choose another dataDir"}
	}
	state := dir + " can be written"
	if at != dir {
		state = dir + " will be created"
	}
	space, known := disk.FreeBytes(at)
	if !known {
		return Finding{subject, StatusOK, "embedded; " + state, ""}
	}
	return freeSpace(subject, state, space)
}

// freeSpace returns the finding on a folder in a state with so many free bytes.
func freeSpace(subject, state string, space int64) Finding {
	switch {
	case space < minSpace:
		return Finding{subject, StatusFail, fmt.Sprintf("embedded; %s, but only %s is free", state, bytesText(space)), "free disk space, or choose another dataDir"}
	case space < lowSpace:
		return Finding{subject, StatusWarn, fmt.Sprintf("embedded; %s, with only %s free", state, bytesText(space)), "free disk space before you index much"}
	default:
		return Finding{subject, StatusOK, fmt.Sprintf("embedded; %s, with %s free", state, bytesText(space)), ""}
	}
}

// nearestExisting returns dir, or its closest parent that exists.
func nearestExisting(dir string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir, info, err
		}
		dir = filepath.Dir(dir)
	}
}

// writable creates a file in dir and removes it. That detects missing permissions, ACLs and read-only disks alike.
func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".tutti-check-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// cause returns the reason of a file error without the path.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

func bytesText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value >= 10 || unit == 0 {
		return strconv.FormatFloat(value, 'f', 0, 64) + " " + units[unit]
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit]
}
