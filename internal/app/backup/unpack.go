package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tutti/internal/core"
)

// maxManifestBytes bounds the manifest, of which a backup of a few hundred GB has some MB.
const maxManifestBytes = 64 << 20

// Unpack stores the archive that r reads as the folder dir, which must be empty or missing. Each file is on disk before the manifest
// is. After an error nothing is left in dir. CodeConflict when dir has files, CodeUnavailable when it cannot be written or the archive
// ends early.
func Unpack(r io.Reader, dir string) (m Manifest, err error) {
	made, err := makeEmpty(dir)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clearFolder(dir, made))
		}
	}()
	u := &unpacker{dir: dir, raw: r, tar: tar.NewReader(r)}
	for {
		head, err := u.tar.Next()
		switch {
		case err != nil:
			return m, readError(err)
		case head.Name == ManifestName:
			return u.finish(head.Size)
		}
		if err := u.file(head); err != nil {
			return m, err
		}
	}
}

// makeEmpty creates dir, and reports whether it was missing. CodeConflict when it has files.
func makeEmpty(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(dir, 0o700)
		made = true
	case len(entries) > 0:
		return false, &core.Error{
			Code: core.CodeConflict, Message: "the folder " + dir + " is not empty", Hint: "name a folder that is empty or does not exist",
		}
	}
	if err != nil {
		return false, core.WrapError(core.CodeUnavailable, "creating the folder of the backup", err)
	}
	return made, nil
}

// clearFolder removes what is in dir, and dir itself if whole is set.
func clearFolder(dir string, whole bool) error {
	if whole {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// unpacker stores the files of one archive.
type unpacker struct {
	dir   string
	raw   io.Reader
	tar   *tar.Reader
	files []File
}

// file stores one file.
func (u *unpacker) file(head *tar.Header) error {
	if !fs.ValidPath(head.Name) || head.Typeflag != tar.TypeReg {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the backup has an entry %q, which is not a file of a backup", head.Name))
	}
	sum := sha256.New()
	if err := writeFile(filepath.Join(u.dir, filepath.FromSlash(head.Name)), io.TeeReader(u.tar, sum)); err != nil {
		return err
	}
	u.files = append(u.files, File{Name: head.Name, Size: head.Size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// finish checks the manifest and stores it.
func (u *unpacker) finish(size int64) (m Manifest, err error) {
	raw, err := io.ReadAll(io.LimitReader(u.tar, maxManifestBytes))
	if err == nil && int64(len(raw)) != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		_, err = io.Copy(io.Discard, u.raw) // the end of the archive: a writer that fails there has failed
	}
	if err != nil {
		return m, readError(err)
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, core.WrapError(core.CodeInvalid, "the manifest of the backup is malformed", err)
	}
	if !slices.Equal(m.Files, u.files) {
		return m, core.NewError(core.CodeInvalid, "the files of the backup differ from its manifest")
	}
	part := filepath.Join(u.dir, ManifestName+".part")
	if err := writeFile(part, bytes.NewReader(raw)); err != nil {
		return m, err
	}
	if err := SyncFolders(u.dir); err != nil {
		return m, err
	}
	if err := os.Rename(part, filepath.Join(u.dir, ManifestName)); err != nil {
		return m, core.WrapError(core.CodeUnavailable, "writing the backup", err)
	}
	return m, SyncFolders(u.dir)
}
