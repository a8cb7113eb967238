package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tutti/internal/core"
)

// lockName is the file inside a data folder that is locked; it stays behind, empty.
const lockName = ".lock"

// ErrLocked is returned by LockFile when another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock is this process's lock on a data folder. The operating system releases it when the process ends.
type Lock struct {
	file *os.File
}

// LockDir creates dir if it is missing and locks it for this process. It does not wait: CodeConflict when another
// tutti, in this process or in another one, has locked it; CodeInternal when the folder cannot be written.
func LockDir(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, core.WrapError(core.CodeInternal, fmt.Sprintf("creating the data folder %s", dir), err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, fmt.Sprintf("opening the lock of the data folder %s", dir), err)
	}
	if err := LockFile(file); err != nil {
		return nil, lockError(dir, errors.Join(err, file.Close()))
	}
	return &Lock{file: file}, nil
}

func lockError(dir string, err error) error {
	if errors.Is(err, ErrLocked) {
		return &core.Error{
			Code:    core.CodeConflict,
			Message: fmt.Sprintf("another tutti uses the data folder %s", dir),
			Hint:    "stop it, or set a different dataDir for this one",
			Err:     err,
		}
	}
	return core.WrapError(core.CodeInternal, fmt.Sprintf("locking the data folder %s", dir), err)
}

// Unlock releases the folder. A second call does nothing.
func (l *Lock) Unlock() error {
	if l == nil || l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	if err := errors.Join(UnlockFile(file), file.Close()); err != nil {
		return core.WrapError(core.CodeInternal, "unlocking the data folder", err)
	}
	return nil
}
