package definition

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tutti/internal/base/order"
	"tutti/internal/core"
)

// Options are settings from outside the folder.
type Options struct {
	// Reserved are IDs that a catalogue cannot have because they are routes of the server. Default none.
	Reserved []string
	// DisableGraphQLIntrospection is the server's setting, nil if it is not set.
	DisableGraphQLIntrospection *bool
	// Production applies the production defaults. Default false.
	Production bool
}

// Load reads a folder of catalogues (CONTRACT section 3): the JSON files in it are one catalogue, and each folder in it is one.
// It skips names that begin with a dot and follows symbolic links, as a ConfigMap of Kubernetes requires. Anything that looks
// like an access rule but is not read as one is an Err. Load returns an error, of CodeInvalid, only if dir is not a readable
// folder; problems inside are the Err of a Definition or a warning. No folder is omitted except lost+found. If dir has more than
// 20,000 names, no folder is read, and the result is one Definition with an Err.
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

// LoadFS is Load for a file system with a root called name.
func LoadFS(fsys fs.FS, name string, opts Options) (Set, error) {
	entries, err := readDir(fsys, ".", maxEntries+1)
	if err != nil {
		return Set{}, noFolder(err)
	}
	l := &loader{fsys: fsys, opts: opts, left: quota{maxBytes, maxValues}}
	top, folders, warnings := l.sort(name, entries)
	set := Set{Warnings: warnings}
	drafts := folders
	switch {
	case top.failed > 0 || len(top.files) > 0 || len(top.strays) > 0:
		drafts = append([]*draft{top}, folders...)
	case len(folders) == 0:
		set.Warnings = append(set.Warnings, printable(name)+" contains no JSON file and no folder: there is no catalogue in it")
	}
	for i, d := range folders {
		if i >= maxFolders && d.failed == 0 {
			d.fail(printable(d.name), fmt.Sprintf("is not read: the maximum is %d folders", maxFolders), "spread them over several servers")
		}
	}
	for _, d := range drafts {
		l.read(d)
	}
	set.Warnings = append(set.Warnings, identify(drafts, opts.Reserved)...)
	for _, d := range drafts {
		set.Definitions = append(set.Definitions, d.finish())
	}
	order.Sort(set.Definitions, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	set.Warnings = append(set.Warnings, warnPartlyRestricted(set.Definitions)...)
	return set, nil
}

func noFolder(err error) error {
	return &core.Error{
		Code: core.CodeInvalid, Message: "the folder of the catalogues cannot be read", Err: err,
		Hint: "set catalogues.dir to an existing folder that this process can read, or leave it empty for the default catalogues",
	}
}

// isJSON reports whether a file has the extension of JSON.
func isJSON(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

// isRead reports whether a file is part of a catalogue's configuration.
func isRead(name string) bool { return isJSON(name) && !strings.HasPrefix(name, ".") }

// isFile reports whether a name is that of the given special file.
func isFile(name, file string) bool { return strings.EqualFold(name, file) }

const (
	baseFile   = "base.json"
	accessFile = "access.json"
)

// lostAndFound is in the root of most mounted volumes.
const lostAndFound = "lost+found"

// loader reads the catalogues of one file system.
type loader struct {
	fsys fs.FS
	opts Options
	// left is the remaining quota for all catalogues.
	left quota
}

// sort returns a draft for the top folder, called name, and one for each folder in it that is a catalogue of its own.
func (l *loader) sort(name string, entries []fs.DirEntry) (top *draft, folders []*draft, warnings []string) {
	top = &draft{name: name, path: ".", top: true}
	if len(entries) > maxEntries {
		failEntries(top)
		return top, nil, nil
	}
	// hollow are folders that are probably not catalogues, for example those that a container runtime creates for a missing
	// mount.
	var hollow []string
	for _, entry := range entries {
		name := entry.Name()
		if name == lostAndFound {
			warnings = append(warnings, lostAndFound+" is a folder of the file system and is not read")
			continue
		}
		var d *draft
		if !strings.HasPrefix(name, ".") {
			d = l.folder(name)
		}
		switch {
		case d != nil:
			folders = append(folders, d)
			if resemblesAccessFile(name) && (d.failed > 0 || l.isEmpty(name)) {
				hollow = append(hollow, name)
			}
		case isRead(name):
			top.files = append(top.files, name)
		case resemblesAccessFile(name):
			top.strays = append(top.strays, name)
		}
	}
	if len(top.files) > 0 {
		top.strays = append(top.strays, hollow...)
	}
	if len(top.files) > 0 && len(folders) > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"%s holds JSON files as well as folders: it is a catalogue itself, and each folder in it is another", printable(name)))
	}
	return top, folders, warnings
}

// folder returns a draft for a top-level entry that is a catalogue of its own, nil for a file.
func (l *loader) folder(name string) *draft {
	d := &draft{name: name, path: name}
	info, err := fs.Stat(l.fsys, name)
	switch {
	case isJSON(name) && (err != nil || !info.IsDir() || l.isMisplaced(name)):
		return nil
	case err != nil:
		// It may be a link to a folder, or a folder without permission.
		bad := unreadable(err)
		d.fail(printable(name), bad.what, bad.hint)
		return d
	case !info.IsDir():
		return nil
	}
	if top, err := fs.Stat(l.fsys, "."); err == nil && os.SameFile(top, info) {
		d.fail(printable(name), "is a link to the folder that contains it", "remove the link")
	}
	return d
}

// isMisplaced reports whether a folder has the name of a file: a container runtime creates an empty folder for a file that it
// should mount and does not find. It must be reported as an error of that file, especially of access.json.
func (l *loader) isMisplaced(name string) bool {
	if isFile(name, baseFile) || isFile(name, accessFile) {
		return true
	}
	return l.isEmpty(name)
}

func (l *loader) isEmpty(name string) bool {
	entries, err := readDir(l.fsys, name, 1)
	return err == nil && len(entries) == 0
}

// read reads a folder's files.
func (l *loader) read(d *draft) {
	if d.failed > 0 || !d.top && !l.list(d) {
		return
	}
	d.rejectStrays()
	if d.top && len(d.files) == 0 {
		return
	}
	if len(d.files) > maxFiles {
		d.fail(d.label(), fmt.Sprintf("holds more than %d JSON files", maxFiles), "move what is not configuration elsewhere")
		return
	}
	if l.merge(d) {
		d.build(l.opts)
	}
	d.configuration = nil // it may be large, and the definition has copied what it needs
}

// merge merges the files of a folder; false if they exceed the quota.
func (l *loader) merge(d *draft) bool {
	room, ok := l.quotaFor(d)
	if !ok {
		return false
	}
	d.configuration = &node{kind: kindObject, file: d.file(baseFile)}
	merging := newMerger(&d.findings)
	var base []*node
	for _, name := range d.files {
		root, ok := l.parse(d, name, room)
		switch {
		case !ok:
			return false
		case root == nil || isFile(name, accessFile):
		case isFile(name, baseFile):
			base = append(base, root)
		default:
			merging.merge(d.configuration, root, "", "which is read later and wins")
		}
	}
	for _, root := range base {
		merging.merge(d.configuration, root, "", "which wins")
	}
	return true
}

// list lists the files of a folder below the top, false if there is nothing to read.
func (l *loader) list(d *draft) bool {
	entries, err := readDir(l.fsys, d.path, maxEntries+1)
	if err != nil {
		bad := unreadable(err)
		d.fail(printable(d.name), bad.what, bad.hint)
		return false
	}
	if len(entries) > maxEntries {
		failEntries(d)
		return false
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case isRead(name):
			d.files = append(d.files, name)
		case resemblesAccessFile(name):
			d.strays = append(d.strays, name)
		case !strings.HasPrefix(name, "."):
			l.warnUnread(d, name)
		}
	}
	if len(d.files) == 0 {
		d.rejectStrays()
		d.fail(printable(d.name), "contains no JSON file", "put base.json with documentType and esIndex into it, or remove the folder")
		return false
	}
	return true
}

func (l *loader) warnUnread(d *draft, name string) {
	info, err := fs.Stat(l.fsys, path.Join(d.path, name))
	if err != nil {
		d.warn(d.file(name) + " " + unreadable(err).what)
		return
	}
	if !info.IsDir() {
		return
	}
	if _, err := fs.Stat(l.fsys, path.Join(d.path, name, accessFile)); err == nil {
		d.fail(d.file(name)+"/"+accessFile, "is not read: an access rule must be beside the files of its catalogue", "move it up, or remove it")
		d.denyAll()
		return
	}
	d.warn(d.file(name) + " is a folder in a catalogue's folder, and not read")
}

// parse reads one file. It returns nil if the file has an error, and false if the folder exceeds a limit.
func (l *loader) parse(d *draft, name string, room *quota) (root *node, ok bool) {
	file, isAccess, before := d.file(name), isFile(name, accessFile), d.failed
	data, bad := readFile(l.fsys, path.Join(d.path, name))
	if bad == nil {
		t := treeReader{file: file, most: room.values, onDuplicate: func(pointer string) {
			if isAccess {
				d.failAt(pointer, file, "is set twice", "keep one of them")
			} else {
				d.warnAt(pointer, file, "is set twice: the later one applies")
			}
		}}
		root, bad = t.parse(data)
		if !l.consume(d, room, quota{len(data), t.values}) {
			return nil, false
		}
	}
	switch {
	case isAccess:
		d.addAccess(file, root, bad, before)
	case bad != nil:
		d.fail(file, bad.what, bad.hint)
		d.broken = true
		root = nil
	default:
		d.rejectRule(name, file, root)
		d.sources++
	}
	return root, true
}

// Limits of reading, so that a data folder that is configured by mistake does not exhaust memory or time. Folders beyond the
// limit, in the order of their names, are listed as failed.
const (
	maxFolders = 1000
	maxFiles   = 1000
	// maxEntries limits the names in a folder, whether they are read or not.
	maxEntries = 20_000
	// maxFolderBytes and maxFolderValues apply to the files of one catalogue, maxBytes and maxValues to all.
	maxFolderBytes  = 32 << 20
	maxFolderValues = 500_000
	maxBytes        = 256 << 20
	maxValues       = 2_000_000
)

// moveDataHint is the hint for exceeded limits.
const moveDataHint = "a configuration is far smaller: put data elsewhere"

// quota is the remaining limit.
type quota struct{ bytes, values int }

// quotaFor returns the quota for a folder, false if there is none. It checks file sizes first, so that a folder of large files is
// rejected unread and uses nothing of the total.
func (l *loader) quotaFor(d *draft) (*quota, bool) {
	bytes := 0
	for _, name := range d.files {
		if info, err := fs.Stat(l.fsys, path.Join(d.path, name)); err == nil && info.Mode().IsRegular() && info.Size() <= maxFileBytes {
			bytes += int(info.Size())
		}
	}
	switch {
	case bytes > maxFolderBytes:
		failBytes(d)
		return nil, false
	case bytes > l.left.bytes || l.left.values <= 0:
		failAll(d)
		return nil, false
	}
	return &quota{maxFolderBytes, maxFolderValues}, true
}

// consume subtracts a file from the quotas; it returns false if they are exceeded.
func (l *loader) consume(d *draft, room *quota, read quota) bool {
	room.bytes -= read.bytes
	room.values -= read.values
	l.left.bytes -= read.bytes
	l.left.values -= read.values
	switch {
	case room.bytes < 0: // it has grown since its size was checked
		failBytes(d)
	case l.left.bytes < 0 || l.left.values < 0:
		failAll(d)
	case room.values < 0:
		d.fail(d.label(), "holds more than 500,000 values", moveDataHint)
	default:
		return true
	}
	return false
}

func failBytes(d *draft) { d.fail(d.label(), "holds more than 32 MiB of JSON files", moveDataHint) }

func failAll(d *draft) {
	d.fail(d.label(), "is not read: 256 MiB and 2,000,000 values are the most that all catalogues may hold together",
		"move what is not configuration elsewhere, there and in the folders before it")
}

func failEntries(d *draft) {
	d.fail(d.label(), fmt.Sprintf("is not read: it holds more than %d files and folders", maxEntries), moveDataHint)
}

// readDir returns the entries of a folder sorted by name, or in any order if there are more than most.
func readDir(fsys fs.FS, name string, most int) ([]fs.DirEntry, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	folder, is := file.(fs.ReadDirFile)
	if !is {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	var entries []fs.DirEntry
	for len(entries) < most {
		some, err := folder.ReadDir(most - len(entries))
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	order.Sort(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// DefaultIndex is an index that repositories write to; it gets a catalogue if none are configured.
type DefaultIndex struct {
	Alias string
	// DocumentType is "analysis", or "record" for tabular data.
	DocumentType string
}

// Default returns the catalogues of a server without a folder (CONTRACT section 3): one for each alias, with its name as ID.
// Duplicate aliases become one, with the first document type. An alias with the name of a route is listed as failed.
func Default(indices []DefaultIndex, opts Options) Set {
	var set Set
	types := map[string]string{}
	for _, index := range indices {
		if documentType, is := types[index.Alias]; is {
			if documentType != index.DocumentType {
				set.Warnings = append(set.Warnings, fmt.Sprintf("the index %s holds %s as well as %s documents: its catalogue calls them %s",
					printable(index.Alias), printable(documentType), printable(index.DocumentType), printable(documentType)))
			}
			continue
		}
		types[index.Alias] = index.DocumentType
		set.Definitions = append(set.Definitions, defaultDefinition(index, opts))
	}
	order.Sort(set.Definitions, func(a, b Definition) int { return cmp.Compare(a.ID, b.ID) })
	return set
}

func defaultDefinition(index DefaultIndex, opts Options) Definition {
	d := Definition{
		ID: index.Alias, DocumentType: index.DocumentType, Index: index.Alias,
		GraphQLIntrospection: introspection(nil, opts), MaxAliases: defaultMaxAliases,
	}
	if slices.Contains(opts.Reserved, index.Alias) {
		d.Err = &core.Error{
			Code: core.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be the id of a catalogue, because it is the name of a server route: "+
				"configure a folder of catalogues with another catalogId for this index", quoted(index.Alias)),
			Hint: "set catalogues.dir to a folder with a base.json that has catalogId, documentType and esIndex",
		}
	}
	return d
}
