package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tutti/internal/core"
)

// Folder is a complete backup whose files have the sizes and hashes of its manifest.
type Folder struct {
	Manifest

	dir string
}

// Open reads all files of a backup and compares them with the manifest. CodeInvalid when the backup is not complete or was altered,
// CodeUnsupported when a newer tutti wrote it.
func Open(dir string) (*Folder, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: "the folder " + dir + " is not a complete backup: it has no " + ManifestName, Err: err,
			Hint: "the manifest is written last: use another backup if this one was interrupted",
		}
	}
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "reading the manifest of the backup", err)
	}
	f := &Folder{dir: dir}
	if err := json.Unmarshal(raw, &f.Manifest); err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the manifest of the backup is malformed", err)
	}
	if f.Format != Format {
		return nil, core.NewError(core.CodeUnsupported, fmt.Sprintf("the backup has the format %d, this tutti reads format %d", f.Format, Format))
	}
	for _, file := range f.Files {
		if err := f.check(file); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// check compares a file with its entry of the manifest.
func (f *Folder) check(want File) error {
	if !fs.ValidPath(want.Name) {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("the manifest names %q, which is not a file of a backup", want.Name))
	}
	altered := func(reason string, err error) error {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the file " + want.Name + " of the backup " + reason, Hint: "use another backup, or another copy of this one", Err: err,
		}
	}
	from, err := f.open(want.Name)
	if err != nil {
		return altered("cannot be read", err)
	}
	defer func() { _ = from.Close() }() // only read
	sum := sha256.New()
	size, err := io.Copy(sum, from)
	switch {
	case err != nil:
		return altered("cannot be read", err)
	case size != want.Size:
		return altered(fmt.Sprintf("has %d bytes, the manifest says %d", size, want.Size), nil)
	case hex.EncodeToString(sum.Sum(nil)) != want.SHA256:
		return altered("was altered: its hash differs from the manifest", nil)
	}
	return nil
}

func (f *Folder) open(name string) (*os.File, error) {
	return os.Open(filepath.Join(f.dir, filepath.FromSlash(name)))
}

// Has reports whether the backup contains a part.
func (f *Folder) Has(part string) bool { return slices.Contains(f.Parts, part) }

// CopyPart copies the files of a part into a folder.
func (f *Folder) CopyPart(part, to string) error {
	for _, file := range f.Files {
		name, ok := strings.CutPrefix(file.Name, part+"/")
		if !ok {
			continue
		}
		from, err := f.open(file.Name)
		if err != nil {
			return core.WrapError(core.CodeInvalid, "reading the backup", err)
		}
		if err := errors.Join(writeFile(filepath.Join(to, filepath.FromSlash(name)), from), from.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Streams returns the names of the streams that Writer.Stream wrote for a part.
func (f *Folder) Streams(part string) []string {
	var names []string
	for _, file := range f.Files {
		if name, first := strings.CutSuffix(file.Name, pieceName("", 0)); first && path.Dir(name) == part {
			names = append(names, path.Base(name))
		}
	}
	return names
}

// Stream calls read with the content of a stream that Writer.Stream wrote.
func (f *Folder) Stream(part, name string, read func(io.Reader) error) error {
	s := &stream{folder: f, name: part + "/" + name}
	err := read(s)
	if s.current != nil {
		err = errors.Join(err, s.current.Close())
	}
	return err
}

// stream reads the files of one stream.
type stream struct {
	folder  *Folder
	name    string
	number  int
	current *os.File
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	for {
		if s.current == nil {
			next := pieceName(s.name, s.number)
			if !slices.ContainsFunc(s.folder.Files, func(f File) bool { return f.Name == next }) {
				return 0, io.EOF
			}
			var err error
			if s.current, err = s.folder.open(next); err != nil {
				return 0, err
			}
			s.number++
		}
		n, err := s.current.Read(b)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		err = s.current.Close()
		if s.current = nil; err != nil {
			return 0, err
		}
	}
}
