package definition

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tutti/internal/core"
)

// Bounds of what is read. Folders behind the most, in the order of their names, are listed as failed.
const (
	maxFolders = 1000
	maxFiles   = 1000
)

// Options say what the folder does not.
type Options struct {
	// Reserved are ids that a catalogue cannot have because routes of the server are called so. Default none.
	Reserved []string
	// DisableGraphQLIntrospection is the server's own word on it, nil when it says nothing.
	DisableGraphQLIntrospection *bool
	// Production closes what is closed in production unless somebody says otherwise. Default false.
	Production bool
}

// Load reads a folder of catalogues (CONTRACT section 3): the JSON files in it are one catalogue, each folder in it is one.
// Names that begin with a dot are skipped and symbolic links are followed, as a ConfigMap of Kubernetes needs it. The error
// is of CodeInvalid and only says that dir is no folder that can be read; whatever is wrong inside is the Fault of one
// Definition or a warning, and no folder is left out.
func Load(dir string, opts Options) (Set, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return Set{}, noFolder(err)
	}
	name := filepath.Base(dir)
	if whole, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(whole)
	}
	return LoadFS(os.DirFS(dir), name, opts)
}

// LoadFS is Load for a file system, whose root is called name.
func LoadFS(fsys fs.FS, name string, opts Options) (Set, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return Set{}, noFolder(err)
	}
	l := &loader{fsys: fsys, opts: opts}
	top := &draft{name: name, path: ".", top: true}
	var folders []*draft
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		switch d := l.folder(entry.Name()); {
		case d != nil:
			folders = append(folders, d)
		case isJSON(entry.Name()):
			top.files = append(top.files, entry.Name())
		}
	}
	var set Set
	drafts := folders
	switch {
	case len(top.files) > 0:
		drafts = append([]*draft{top}, folders...)
		if len(folders) > 0 {
			set.Warnings = append(set.Warnings, fmt.Sprintf(
				"%s holds JSON files as well as folders: it is a catalogue itself, and each folder in it is another", shown(name)))
		}
	case len(folders) == 0:
		set.Warnings = append(set.Warnings, shown(name)+" holds no JSON file and no folder: there is no catalogue in it")
	}
	for i, d := range folders {
		if i >= maxFolders && d.failed == 0 {
			d.fail(shown(d.name), fmt.Sprintf("is not read: %d folders are the most", maxFolders), "spread them over several servers")
		}
	}
	for _, d := range drafts {
		l.read(d)
	}
	set.Warnings = append(set.Warnings, identify(drafts, opts.Reserved)...)
	for _, d := range drafts {
		set.Definitions = append(set.Definitions, d.finish())
	}
	slices.SortFunc(set.Definitions, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	return set, nil
}

func noFolder(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the folder of the catalogues cannot be read", Err: err,
		Hint: "name a folder that is there and that this process may read, or none for the default catalogues",
	}
}

// isJSON tells whether a file counts by its name.
func isJSON(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

// isFile tells whether a name is that of one of the two files that have a meaning of their own.
func isFile(name, file string) bool { return strings.EqualFold(name, file) }

const (
	baseFile   = "base.json"
	accessFile = "access.json"
)

// loader reads the catalogues of one file system.
type loader struct {
	fsys fs.FS
	opts Options
}

// folder gives a draft for an entry at the top that is a catalogue of its own, nil for a file.
func (l *loader) folder(name string) *draft {
	d := &draft{name: name, path: name}
	info, err := fs.Stat(l.fsys, name)
	switch {
	case isJSON(name) && (err != nil || !info.IsDir() || l.isMisplaced(name)):
		return nil
	case err != nil:
		// It may well be a link to a folder, or a folder that may not be looked at.
		bad := unreadable(err)
		d.fail(shown(name), bad.what, bad.hint)
		return d
	case !info.IsDir():
		return nil
	}
	if top, err := fs.Stat(l.fsys, "."); err == nil && os.SameFile(top, info) {
		d.fail(shown(name), "is a link to the folder that it stands in", "take the link away")
	}
	return d
}

// isMisplaced tells whether a folder stands where a file was meant: a container runtime makes an empty folder for a file
// that it should mount and does not find. It must be seen as that file's fault, access.json's above all.
func (l *loader) isMisplaced(name string) bool {
	if isFile(name, baseFile) || isFile(name, accessFile) {
		return true
	}
	entries, err := fs.ReadDir(l.fsys, name)
	return err == nil && len(entries) == 0
}

// read reads a folder's files.
func (l *loader) read(d *draft) {
	if d.failed > 0 {
		return
	}
	if !d.top && !l.list(d) {
		return
	}
	if len(d.files) > maxFiles {
		d.fail(d.label(), fmt.Sprintf("holds more than %d JSON files", maxFiles), "put elsewhere what is no configuration")
		return
	}
	d.configuration = &node{kind: kindObject, file: d.file(baseFile)}
	var base []*node
	for _, name := range d.files {
		root := l.parse(d, name)
		switch {
		case root == nil || isFile(name, accessFile):
		case isFile(name, baseFile):
			base = append(base, root)
		default:
			merge(d.configuration, root, "", "which is read later and wins", &d.findings)
		}
	}
	for _, root := range base {
		merge(d.configuration, root, "", "which wins", &d.findings)
	}
	d.build(l.opts)
}

// list finds the files of a folder below the top, false when there is nothing to read.
func (l *loader) list(d *draft) bool {
	entries, err := fs.ReadDir(l.fsys, d.path)
	if err != nil {
		bad := unreadable(err)
		d.fail(shown(d.name), bad.what, bad.hint)
		return false
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case isJSON(name):
			d.files = append(d.files, name)
		default:
			info, err := fs.Stat(l.fsys, path.Join(d.path, name))
			if err != nil {
				d.warn(d.file(name) + " " + unreadable(err).what)
			} else if info.IsDir() {
				d.warn(d.file(name) + " is a folder in a catalogue's folder, and not read")
			}
		}
	}
	if len(d.files) == 0 {
		d.fail(shown(d.name), "holds no JSON file", "put base.json with documentType and esIndex into it, or take the folder away")
		return false
	}
	return true
}

// parse reads one file, nil when it has a fault.
func (l *loader) parse(d *draft, name string) *node {
	file := d.file(name)
	data, bad := readFile(l.fsys, path.Join(d.path, name))
	var root *node
	var twice []string
	if bad == nil {
		root, twice, bad = parseFile(file, data)
	}
	if isFile(name, accessFile) {
		d.addAccess(file, root, twice, bad)
		return root
	}
	if bad != nil {
		d.fail(file, bad.what, bad.hint)
		d.broken = true
		return nil
	}
	for _, pointer := range twice {
		d.warnAt(pointer, file, "is set twice: the later counts")
	}
	if root.member("field") != nil && root.member("scope") != nil {
		d.fail(file, "holds an access rule, which counts in access.json alone", "rename it to access.json")
	}
	d.sources++
	return root
}
