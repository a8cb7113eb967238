package backup

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"tutti/internal/core"
)

// writeFile writes a file, which is on disk when writeFile returns, and the folders that it is in.
func writeFile(path string, r io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return writeError(err)
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return writeError(err)
	}
	out := &errorRecorder{Writer: to}
	if _, err := io.Copy(out, r); err != nil {
		if out.err != nil {
			return errors.Join(writeError(out.err), to.Close())
		}
		return errors.Join(readError(err), to.Close())
	}
	return writeError(errors.Join(to.Sync(), to.Close()))
}

// errorRecorder records the error of a Writer, to distinguish it from errors of a Reader.
type errorRecorder struct {
	io.Writer
	err error
}

// Write writes and records the error.
func (n *errorRecorder) Write(b []byte) (int, error) {
	written, err := n.Writer.Write(b)
	n.err = err
	return written, err
}

// readError returns the error of an archive or a file that cannot be read to its end.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &core.Error{
			Code: core.CodeUnavailable, Message: "the backup ended before it was complete", Hint: "the log of the server says why", Err: io.ErrUnexpectedEOF,
		}
	}
	return core.WrapError(core.CodeUnavailable, "reading the backup", err)
}

func writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return &core.Error{
			Code: core.CodeUnavailable, Message: "writing the files: the disk is full", Hint: "free some space, or name a folder on another disk", Err: err,
		}
	default:
		return core.WrapError(core.CodeUnavailable, "writing the files", err)
	}
}

// SyncFiles makes the content of the files in dir and below durable.
func SyncFiles(dir string) error {
	return writeError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	}))
}

// SyncFolders makes the entries of dir and of the folders in it durable. Windows does so by itself.
func SyncFolders(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return writeError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		folder, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(folder.Sync(), folder.Close())
	}))
}
