package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tutti/internal/app/backup"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/queue/embedded"
)

// marker is the file that keeps every tutti from using a data folder while a restore writes it, locked for this process. An empty one that is not
// locked is of a restore that was killed before it wrote to the folder, or after its end: files that are there are whole.
type marker struct {
	file *os.File
	// parts are those that an interrupted restore was writing; found says that there was one.
	parts []string
	found bool
}

// openMarker creates the marker of a data folder, or takes over that of an interrupted restore. CodeConflict while another restore is in
// progress.
func openMarker(cfg config.Config) (*marker, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o750); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "creating the data folder", err)
	}
	path := filepath.Join(cfg.DataDir, restoringFile)
	_, err := os.Lstat(path)
	m := &marker{found: err == nil}
	if m.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, markerError(err)
	}
	if err := embedded.LockFile(m.file); err != nil {
		_ = m.file.Close() // nothing was written
		if errors.Is(err, embedded.ErrLocked) {
			return nil, restoreInProgress(cfg)
		}
		return nil, markerError(err)
	}
	text, err := io.ReadAll(m.file)
	if err != nil {
		return nil, errors.Join(markerError(err), m.release())
	}
	for _, part := range dataParts(cfg) {
		if slices.Contains(strings.Fields(string(text)), part.name) {
			m.parts = append(m.parts, part.name)
		}
	}
	return m, nil
}

// write records the parts that the restore writes.
func (m *marker) write(parts []string) error {
	text := strings.Join(parts, "\n") + "\n"
	_, err := m.file.WriteAt([]byte(text), 0) // never empty once it was written
	if err == nil {
		err = m.file.Truncate(int64(len(text)))
	}
	if err = errors.Join(err, m.file.Sync()); err != nil {
		return markerError(err)
	}
	return backup.SyncFolders(filepath.Dir(m.file.Name()))
}

// release ends a restore that has written nothing. The marker of an interrupted one remains.
func (m *marker) release() error {
	if m.found {
		return errors.Join(embedded.UnlockFile(m.file), m.file.Close())
	}
	return m.remove()
}

// remove removes the marker. It is empty before it is unlocked: another restore must not remove what this one has written.
func (m *marker) remove() error {
	path := m.file.Name()
	return errors.Join(m.file.Truncate(0), embedded.UnlockFile(m.file), m.file.Close(), os.Remove(path), backup.SyncFolders(filepath.Dir(path)))
}

func markerError(err error) error {
	return core.WrapError(core.CodeUnavailable, "writing to the data folder", err)
}

func restoreInProgress(cfg config.Config) error {
	return &core.Error{
		Code: core.CodeConflict, Message: fmt.Sprintf("a restore into the data folder %s is in progress", cfg.DataDir), Hint: "wait until it has ended",
	}
}

// checkRestored returns an error while a restore into the data folder has not ended.
func checkRestored(cfg config.Config) error {
	path := filepath.Join(cfg.DataDir, restoringFile)
	if _, err := os.Lstat(path); err != nil {
		return nil //nolint:nilerr // a folder that cannot be read is reported when it is opened
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		var info os.FileInfo
		if err = embedded.LockFile(file); err == nil {
			info, err = file.Stat()
			err = errors.Join(err, embedded.UnlockFile(file))
		}
		if err = errors.Join(err, file.Close()); err == nil && info.Size() == 0 && slices.ContainsFunc(dataParts(cfg), func(part dataPart) bool {
			files, _ := hasFiles(filepath.Join(cfg.DataDir, part.name)) // one that cannot be read is reported when it is opened
			return part.url == "" && files
		}) {
			return nil
		}
	}
	if errors.Is(err, embedded.ErrLocked) {
		return restoreInProgress(cfg)
	}
	return &core.Error{
		Code: core.CodeConflict, Message: fmt.Sprintf("a restore into the data folder %s was interrupted", cfg.DataDir), Err: err,
		Hint: "repeat tutti restore, which first removes what the interrupted one wrote",
	}
}
