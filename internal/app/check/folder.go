package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Free space under which a folder is warned about, and under which nothing can be kept.
const (
	littleSpace = 1 << 30
	noSpace     = 64 << 20
)

// folder looks at one folder of the data folder. lockFile is the file in it that a running tutti has locked.
func folder(subject, dir, lockFile string) Finding {
	if pid, held := holder(filepath.Join(dir, lockFile)); held {
		return Finding{subject, StatusOK, fmt.Sprintf("embedded; %s is in use by a running tutti (process %d)", dir, pid), ""}
	}
	at, info, err := nearest(dir)
	switch {
	case err != nil:
		return Finding{subject, StatusFail, fmt.Sprintf("%s cannot be looked at: %s", dir, cause(err)), "let tutti's user read it, or choose another dataDir"}
	case !info.IsDir():
		return Finding{subject, StatusFail, at + " is no folder", "remove it, or choose another dataDir"}
	}
	if err := writable(at); err != nil {
		return Finding{subject, StatusFail, fmt.Sprintf("%s cannot be written: %s", at, cause(err)), "give it to tutti's user, or choose another dataDir"}
	}
	state := dir + " can be written"
	if at != dir {
		state = dir + " will be made"
	}
	space, known := freeSpace(at)
	switch {
	case !known:
		return Finding{subject, StatusOK, "embedded; " + state, ""}
	case space < noSpace:
		return Finding{subject, StatusFail, fmt.Sprintf("embedded; %s, but only %s are free", state, bytesText(space)), "make room, or choose another dataDir"}
	case space < littleSpace:
		return Finding{subject, StatusWarn, fmt.Sprintf("embedded; %s, with %s free, which is little", state, bytesText(space)), "make room before much is indexed"}
	default:
		return Finding{subject, StatusOK, fmt.Sprintf("embedded; %s, with %s free", state, bytesText(space)), ""}
	}
}

// nearest gives dir, or the folder above it that is there.
func nearest(dir string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir, info, err
		}
		dir = filepath.Dir(dir)
	}
}

// writable makes a file and removes it: rights, lists of rights and read-only disks all speak up.
func writable(dir string) error {
	file, err := os.CreateTemp(dir, ".tutti-check-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// cause gives the reason of a file error without the path.
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

func bytesText(n uint64) string {
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
