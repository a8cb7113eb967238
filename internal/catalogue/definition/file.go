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

	"tutti/internal/core"
	"tutti/internal/sqon"
)

// Bounds of one file. What is over them is a fault of its catalogue.
const (
	maxFileBytes = 16 << 20
	// maxNesting leaves room for the deepest filter that an access.json may hold, of two levels for each group.
	maxNesting = 2*sqon.MaxDepth + 10
	maxValues  = 1_000_000
)

// flaw is why a file cannot be used, and how that is mended. What is said of the file, without its name.
type flaw struct {
	what, hint string
}

// readFile reads a file whole, nil with a flaw where that is not possible. Nothing but a regular file is opened: opening a
// pipe would wait for its writer.
func readFile(fsys fs.FS, path string) ([]byte, *flaw) {
	info, err := fs.Stat(fsys, path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case info.IsDir():
		return nil, &flaw{"is a folder, not a file", "put a file there, or take the folder away"}
	case !info.Mode().IsRegular():
		return nil, &flaw{"is not a regular file", "put a file there, or take it away"}
	}
	file, err := fsys.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(data) > maxFileBytes:
		return nil, &flaw{"is over 16 MiB", "a configuration is far smaller: put data elsewhere"}
	}
	return data, nil
}

// unreadable says why a file or a folder cannot be read, without its path.
func unreadable(err error) *flaw {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &flaw{"cannot be read: permission denied", "let the process read it, or take it away"}
	case errors.Is(err, fs.ErrNotExist):
		return &flaw{"is a link that leads nowhere", "mend the link, or take it away"}
	case errors.Is(err, syscall.ELOOP):
		return &flaw{"is a link that leads in a circle", "mend the link, or take it away"}
	default:
		return &flaw{"cannot be read", "let the process read it, or take it away"}
	}
}

// parseFile reads the one object of a file, name being what messages call it. twice are the pointers of members that were
// set more than once, the later of which counts.
func parseFile(name string, data []byte) (root *node, twice []string, bad *flaw) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if bad := notText(data); bad != nil {
		return nil, nil, bad
	}
	if core.TooDeep(data, maxNesting) {
		return nil, nil, &flaw{fmt.Sprintf("has more than %d levels of objects and lists", maxNesting), "take out what is no configuration"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, nil, badSyntax(data, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	t := treeReader{decoder: decoder, file: name}
	root, err := t.value("")
	switch {
	case err != nil && t.values > maxValues:
		return nil, nil, &flaw{"holds more than 1,000,000 values", "a configuration is far smaller: put data elsewhere"}
	case err != nil:
		return nil, nil, badSyntax(data, err)
	case root.kind != kindObject:
		return nil, nil, &flaw{"must hold an object, not " + root.kind.String(), "put it into braces, below its key"}
	}
	return root, t.twice, nil
}

// notText tells what is wrong with bytes that cannot be JSON at all.
func notText(data []byte) *flaw {
	if len(bytes.TrimSpace(data)) == 0 {
		return &flaw{"is empty", "write {} into it, or take it away"}
	}
	if bytes.HasPrefix(data, []byte("\xFF\xFE")) || bytes.HasPrefix(data, []byte("\xFE\xFF")) {
		return &flaw{"is UTF-16, not UTF-8", "save it as UTF-8"}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			line, column := position(data, i)
			return &flaw{fmt.Sprintf("is not valid UTF-8 at line %d, column %d", line, column), "save it as UTF-8"}
		}
		i += size
	}
	return nil
}

// treeReader turns tokens into nodes.
type treeReader struct {
	decoder *json.Decoder
	file    string
	values  int
	twice   []string
}

var errTooMany = errors.New("too many values")

func (t *treeReader) value(pointer string) (*node, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	if t.values++; t.values > maxValues {
		return nil, errTooMany
	}
	switch v := token.(type) {
	case bool:
		return &node{kind: kindBool, text: fmt.Sprint(v), file: t.file}, nil
	case json.Number:
		return &node{kind: kindNumber, text: v.String(), file: t.file}, nil
	case string:
		return &node{kind: kindText, text: v, file: t.file}, nil
	case json.Delim:
		if v == '[' {
			return t.list(pointer)
		}
		return t.object(pointer)
	default:
		return &node{kind: kindNull, file: t.file}, nil
	}
}

func (t *treeReader) list(pointer string) (*node, error) {
	n := &node{kind: kindList, file: t.file}
	for t.decoder.More() {
		item, err := t.value(belowIndex(pointer, len(n.items)))
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := t.decoder.Token()
	return n, err
}

func (t *treeReader) object(pointer string) (*node, error) {
	n := &node{kind: kindObject, file: t.file}
	at := map[string]int{}
	for t.decoder.More() {
		token, err := t.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		value, err := t.value(below(pointer, name))
		if err != nil {
			return nil, err
		}
		if i, is := at[name]; is {
			n.members[i].value = value
			t.twice = append(t.twice, below(pointer, name))
			continue
		}
		at[name] = len(n.members)
		n.members = append(n.members, member{name, value})
	}
	_, err := t.decoder.Token()
	return n, err
}
