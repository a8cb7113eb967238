package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/sqon"
)

// Limits of one file. Exceeding them is an error of its catalogue.
const (
	maxFileBytes = 16 << 20
	// maxNesting allows the deepest filter in an access.json, with two levels for each group.
	maxNesting = 2*sqon.MaxDepth + 10
)

// fileError is why a file cannot be used, with a hint. what follows the name of the file in messages.
type fileError struct {
	what, hint string
}

// readFile reads a file; nil with a fileError if that fails. It opens only regular files: opening a pipe would wait for its
// writer.
func readFile(fsys fs.FS, path string) ([]byte, *fileError) {
	info, err := fs.Stat(fsys, path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case info.IsDir():
		return nil, &fileError{"is a folder, not a file", "put a file there, or remove the folder"}
	case !info.Mode().IsRegular():
		return nil, &fileError{"is not a regular file", "put a file there, or remove it"}
	case info.Size() > maxFileBytes:
		return nil, tooLarge()
	}
	file, err := fsys.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = file.Close() }()
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	switch _, err := data.ReadFrom(io.LimitReader(file, maxFileBytes+1)); {
	case err != nil:
		return nil, unreadable(err)
	case data.Len() > maxFileBytes:
		return nil, tooLarge()
	}
	return data.Bytes(), nil
}

func tooLarge() *fileError { return &fileError{"is over 16 MiB", moveDataHint} }

// unreadable returns why a file or a folder cannot be read, without its path.
func unreadable(err error) *fileError {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &fileError{"cannot be read: permission denied", "let the process read it, or remove it"}
	case errors.Is(err, fs.ErrNotExist):
		return &fileError{"is a broken link", "fix the link, or remove it"}
	case errors.Is(err, syscall.ELOOP):
		return &fileError{"is a circular link", "fix the link, or remove it"}
	default:
		return &fileError{"cannot be read", "let the process read it, or remove it"}
	}
}

// parse reads the object of a file. It returns nil with a fileError, or nil without one if the file has more values than the
// limit.
func (t *treeReader) parse(data []byte) (*node, *fileError) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if bad := encodingError(data); bad != nil {
		return nil, bad
	}
	if jsontext.TooDeep(data, maxNesting) {
		return nil, &fileError{fmt.Sprintf("has more than %d levels of objects and lists", maxNesting), "remove what is not configuration"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, syntaxError(data, err)
	}
	if whole[0] != '{' {
		t.onDuplicate = func(string) {} // the only error is that it is not an object
	}
	t.decoder = json.NewDecoder(bytes.NewReader(data))
	t.decoder.UseNumber()
	root, err := t.value()
	switch {
	case errors.Is(err, errTooMany):
		return nil, nil
	case err != nil:
		return nil, syntaxError(data, err)
	case root.kind != kindObject:
		return nil, &fileError{"must be an object, not " + root.kind.String(), "wrap it in an object, under its key"}
	}
	return root, nil
}

// encodingError returns what is wrong with bytes that are not UTF-8 text.
func encodingError(data []byte) *fileError {
	if len(bytes.TrimSpace(data)) == 0 {
		return &fileError{"is empty", "write {} into it, or remove it"}
	}
	if bytes.HasPrefix(data, []byte("\xFF\xFE")) || bytes.HasPrefix(data, []byte("\xFE\xFF")) {
		return &fileError{"is UTF-16, not UTF-8", "save it as UTF-8"}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			line, column := position(data, i)
			return &fileError{fmt.Sprintf("is not valid UTF-8 at line %d, column %d", line, column), "save it as UTF-8"}
		}
		i += size
	}
	return nil
}
