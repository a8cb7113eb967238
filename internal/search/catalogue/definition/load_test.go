package definition_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

func TestFoldersOfArranger(t *testing.T) {
	for _, name := range []string{"single", "multi"} {
		t.Run(name, func(t *testing.T) {
			set, err := definition.Load(filepath.Join("testdata", name), definition.Options{Reserved: []string{"jobs"}})
			if err != nil {
				t.Fatal(err)
			}
			wantGolden(t, filepath.Join("testdata", name+".golden.json"), set)
		})
	}
}

func TestSingleFolder(t *testing.T) {
	set, err := definition.Load("testdata/single", definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Definitions) != 1 || set.Warnings != nil {
		t.Fatalf("%v, warnings %v", ids(set), set.Warnings)
	}
	d := set.Definitions[0]
	if d.Err != nil || d.Folder != "single" || d.ID != "genome-files" || d.DocumentType != "file" || d.Index != "file_centric_1.0" ||
		d.MaxAliases != 40 || d.MaxDepth != 13 || !d.EnableSets || d.GraphQLIntrospection {
		t.Errorf("%+v", d)
	}
	age, is := d.Extension("donors.age_at_diagnosis")
	want := definition.ExtendedField{
		FieldName: "donors.age_at_diagnosis", DisplayName: "Age at Diagnosis", DisplayType: "number", RangeStep: new(0.5),
		Unit: "years", Description: "Whole years at the first primary diagnosis.",
	}
	if diff := cmp.Diff(want, age); !is || diff != "" {
		t.Errorf("want, got: %s", diff)
	}
	if none, is := d.Extension("donors"); is {
		t.Errorf("donors is not described, but %+v", none)
	}
	vaccinated, _ := d.Extension("donors.vaccinated")
	if got := string(vaccinated.DisplayValues["order"]); got != "[1.50,2]" {
		t.Errorf("a value is kept as it was written, not %s", got)
	}
	if d.Access == nil || d.Access.Field != "study_id" || d.Access.Scope != "{value}.READ" || d.Access.Public == nil ||
		d.Access.Public.Root.Fields[0] != "file_access" {
		t.Errorf("access %+v", d.Access)
	}
}

func TestWhatIsACatalogue(t *testing.T) {
	tests := map[string]struct {
		files    files
		ids      []string
		warnings []string
	}{
		"files":            {files{"base.json": sound}, []string{"genomics"}, nil},
		"folders":          {files{"b/base.json": sound, "a/base.json": sound}, []string{"a", "b"}, nil},
		"name in capitals": {files{"BASE.JSON": sound}, []string{"genomics"}, nil},
		"files and folders": {
			files{"base.json": sound, "donors/base.json": sound},
			[]string{"donors", "genomics"},
			[]string{"genomics holds JSON files as well as folders: it is a catalogue itself, and each folder in it is another"},
		},
		"dot files": {
			files{"..data/base.json": sound, ".git/config.json": sound, ".base.json": sound, "a/base.json": sound, "a/.swp.json": "{"},
			[]string{"a"},
			nil,
		},
		"lost and found": {
			files{"base.json": sound, "lost+found/base.json": sound},
			[]string{"genomics"},
			[]string{"lost+found is a folder of the file system and is not read"},
		},
		"lost and found alone": {
			files{"lost+found/x": ""},
			nil,
			[]string{"lost+found is a folder of the file system and is not read", "genomics contains no JSON file and no folder: there is no catalogue in it"},
		},
		"nothing":           {files{}, nil, []string{"genomics contains no JSON file and no folder: there is no catalogue in it"}},
		"nothing but text":  {files{"README.md": "x"}, nil, []string{"genomics contains no JSON file and no folder: there is no catalogue in it"}},
		"folder named json": {files{"a.json/base.json": sound}, []string{"a.json"}, nil},
		"ids in order": {
			files{"1/base.json": `{"catalogId": "z", "documentType": "a", "esIndex": "a"}`, "2/base.json": `{"catalogId": "Z", "documentType": "a", "esIndex": "a"}`, "3/base.json": `{"catalogId": "a", "documentType": "a", "esIndex": "a"}`},
			[]string{"Z", "a", "z"},
			[]string{`the ids "Z" and "z" differ only in case`},
		},
		"names of JavaScript": {
			files{"toString/base.json": sound, "__proto__/base.json": sound, "constructor/base.json": sound},
			[]string{"__proto__", "constructor", "toString"},
			nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := load(t, test.files, definition.Options{})
			if diff := cmp.Diff(test.ids, ids(set)); diff != "" {
				t.Errorf("ids: want, got: %s", diff)
			}
			if diff := cmp.Diff(test.warnings, set.Warnings); diff != "" {
				t.Errorf("warnings: want, got: %s", diff)
			}
			for _, d := range set.Definitions {
				if d.Err != nil {
					t.Errorf("%s: %v", d.ID, d.Err)
				}
			}
		})
	}
}

func TestEmptyFolder(t *testing.T) {
	fsys := files{"a/base.json": sound, "c/notes.txt": "x", "c/old/base.json": sound}.fs()
	fsys["b"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	set, err := definition.LoadFS(fsys, "genomics", definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids(set)); diff != "" {
		t.Fatal(diff)
	}
	const hint = "put base.json with documentType and esIndex into it, or remove the folder"
	wantFault(t, named(t, set, "b"), "", "b contains no JSON file", hint)
	wantFault(t, named(t, set, "c"), "", "c contains no JSON file", hint)
	if got := named(t, set, "c").Warnings; !slices.Equal(got, []string{"c/old is a folder in a catalogue's folder, and not read"}) {
		t.Errorf("warnings %q", got)
	}
	if d := named(t, set, "a"); d.Err != nil || d.Warnings != nil {
		t.Errorf("%+v", d)
	}
}

func TestBrokenFolderTouchesNoOther(t *testing.T) {
	whole := files{"a/base.json": sound, "b/base.json": `{"documentType": "donor", "esIndex": "donors"}`}
	want := load(t, whole, definition.Options{}).Definitions
	for name, text := range map[string]string{
		"syntax": `{"extended": [}`, "type": `{"extended": 5}`, "root": `[]`, "empty": ``, "bytes": "\xFF", "deep": strings.Repeat("[", 1e6),
	} {
		t.Run(name, func(t *testing.T) {
			set := load(t, files{
				"a/base.json": whole["a/base.json"], "b/base.json": whole["b/base.json"],
				"broken/base.json": `{"documentType": "file", "description": "Files.", "esIndex": "files"}`, "broken/extended.json": text,
			}, definition.Options{})
			if diff := cmp.Diff(want, set.Definitions[:2]); diff != "" {
				t.Errorf("want, got: %s", diff)
			}
			d := named(t, set, "broken")
			if d.Err == nil || d.DocumentType != "file" || d.Description != "Files." {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestFoldersBeyondTheMost(t *testing.T) {
	f := files{"base.json": sound}
	for i := range 1002 {
		f[fmt.Sprintf("f%04d/base.json", i)] = sound
	}
	set := load(t, f, definition.Options{})
	if len(set.Definitions) != 1003 {
		t.Fatalf("%d definitions", len(set.Definitions))
	}
	if d := named(t, set, "f0999"); d.Err != nil {
		t.Error(d.Err)
	}
	for _, id := range []string{"f1000", "f1001"} {
		wantFault(t, named(t, set, id), "", id+" is not read: the maximum is 1000 folders", "spread them over several servers")
	}
}

func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(file, []byte(sound), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"absent": filepath.Join(filepath.Dir(file), "absent"), "a file": file, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			set, err := definition.Load(dir, definition.Options{})
			if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != "the folder of the catalogues cannot be read" ||
				core.HintOf(err) != "set catalogues.dir to an existing folder that this process can read, or leave it empty for the default catalogues" {
				t.Errorf("%v", err)
			}
			if e, is := errors.AsType[*core.Error](err); !is || e.Err == nil {
				t.Errorf("the log must say why: %v", err)
			}
			if set.Definitions != nil {
				t.Errorf("%+v", set)
			}
		})
	}
}

// write makes the files of a folder on the disk, called genomics.
func write(t *testing.T, f files) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "genomics")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, f.fs()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConfigMap(t *testing.T) {
	dir := write(t, files{"..2026_08_01/base.json": sound, "..2026_08_01/extended.json": `{"extended": []}`})
	link(t, "..2026_08_01", filepath.Join(dir, "..data"))
	link(t, "..data/base.json", filepath.Join(dir, "base.json"))
	link(t, "..data/extended.json", filepath.Join(dir, "extended.json"))
	link(t, "..data", filepath.Join(dir, "analyses"))
	set, err := definition.Load(dir, definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"analyses", "genomics"}, ids(set)); diff != "" {
		t.Error(diff)
	}
	for _, d := range set.Definitions {
		if d.Err != nil || d.Warnings != nil || d.Index != "analyses" {
			t.Errorf("%+v", d)
		}
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err)
	}
}

func TestLinks(t *testing.T) {
	dir := write(t, files{"a/base.json": sound, "b/base.json": sound, "c/base.json": sound})
	link(t, "circle", filepath.Join(dir, "circle"))
	link(t, "nowhere", filepath.Join(dir, "dangling"))
	link(t, ".", filepath.Join(dir, "self"))
	link(t, "extended.json", filepath.Join(dir, "b", "extended.json"))
	link(t, "../nowhere.json", filepath.Join(dir, "c", "extended.json"))
	link(t, "..", filepath.Join(dir, "a", "up"))
	link(t, "old", filepath.Join(dir, "a", "old"))
	set, err := definition.Load(dir, definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "circle", "dangling", "self"}, ids(set)); diff != "" {
		t.Fatal(diff)
	}
	const hint = "fix the link, or remove it"
	wantFault(t, named(t, set, "b"), "", "b/extended.json is a circular link", hint)
	wantFault(t, named(t, set, "c"), "", "c/extended.json is a broken link", hint)
	wantFault(t, named(t, set, "circle"), "", "circle is a circular link", hint)
	wantFault(t, named(t, set, "dangling"), "", "dangling is a broken link", hint)
	wantFault(t, named(t, set, "self"), "", "self is a link to the folder that contains it", "remove the link")
	a := named(t, set, "a")
	want := []string{"a/old is a circular link", "a/up is a folder in a catalogue's folder, and not read"}
	if diff := cmp.Diff(want, a.Warnings); diff != "" || a.Err != nil {
		t.Errorf("fault %v, warnings: want, got: %s", a.Err, diff)
	}
	if d := named(t, set, "c"); d.DocumentType != "analysis" {
		t.Errorf("what could be read is lost: %+v", d)
	}
}

// denied is a file system whose files have sizes, but not all can be opened.
type denied struct {
	fstest.MapFS
	errs map[string]error
}

func (d denied) Open(name string) (fs.File, error) {
	if err := d.errs[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/srv/secret/" + name, Err: err}
	}
	return d.MapFS.Open(name)
}

func (d denied) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.errs[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/srv/secret/" + name, Err: err}
	}
	return d.MapFS.ReadDir(name)
}

func TestUnreadable(t *testing.T) {
	t.Run("permission", func(t *testing.T) {
		whole := files{"a/base.json": sound, "b/base.json": sound, "b/extended.json": `{}`, "c/base.json": sound, "d/base.json": sound}.fs()
		set, err := definition.LoadFS(denied{whole, map[string]error{
			"b/extended.json": fs.ErrPermission, "c": fs.ErrPermission, "d/base.json": errors.New("input/output error on disk"),
		}}, "genomics", definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const hint = "let the process read it, or remove it"
		wantFault(t, named(t, set, "b"), "", "b/extended.json cannot be read: permission denied", hint)
		wantFault(t, named(t, set, "c"), "", "c cannot be read: permission denied", hint)
		wantFault(t, named(t, set, "d"), "", "d/base.json cannot be read", hint)
		if d := named(t, set, "a"); d.Err != nil {
			t.Error(d.Err)
		}
		if d := named(t, set, "b"); d.DocumentType != "analysis" {
			t.Errorf("what could be read is lost: %+v", d)
		}
	})
	t.Run("folder in place of a file", func(t *testing.T) {
		const hint = "put a file there, or remove the folder"
		set := load(t, files{"a/base.json/x.txt": "", "b/base.json": sound}, definition.Options{})
		wantFault(t, named(t, set, "a"), "", "a/base.json is a folder, not a file", hint)
		set = load(t, files{"base.json": sound, "access.json/x.txt": ""}, definition.Options{})
		wantFault(t, named(t, set, "genomics"), "", "access.json is a folder, not a file", hint)
		if rule := set.Definitions[0].Access; rule == nil || *rule != (definition.AccessRule{}) {
			t.Errorf("a rule that cannot be read must deny everyone: %+v", rule)
		}
		fsys := files{"base.json": sound}.fs()
		fsys["extended.json"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		set, err := definition.LoadFS(fsys, "genomics", definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, named(t, set, "genomics"), "", "extended.json is a folder, not a file", hint)
	})
	t.Run("device", func(t *testing.T) {
		fsys := files{"base.json": sound}.fs()
		fsys["pipe.json"] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644}
		set, err := definition.LoadFS(fsys, "genomics", definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, named(t, set, "genomics"), "", "pipe.json is not a regular file", "put a file there, or remove it")
	})
	t.Run("odd names", func(t *testing.T) {
		dir := write(t, files{"a/base.json": sound})
		odd := filepath.Join(dir, "b\x01\xFF")
		if err := os.Mkdir(odd, 0o755); err != nil {
			t.Skip(err)
		}
		set, err := definition.Load(dir, definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b__"}, ids(set)); diff != "" {
			t.Fatal(diff)
		}
		wantFault(t, named(t, set, "b__"), "", "b_\uFFFD cannot be read", "let the process read it, or remove it")
	})
}

func TestMerge(t *testing.T) {
	d := only(t, files{
		"base.json":   `{"documentType": "file", "esIndex": "files", "dataRelease": "DR-42", "description": "", "table": {"rowIdFieldName": "id"}, "facets": null}`,
		"a.json":      `{"documentType": "donor", "description": "Files.", "table": {"columns": [{"fieldName": "a"}], "maxResultsWindow": 5}, "maxDepth": 3}`,
		"facets.json": `{"facets": {"aggregations": [{"fieldName": "study__id"}]}}`,
		"z.json":      `{"table": {"columns": [{"fieldName": "z"}], "rowIdFieldName": "z"}, "esIndex": "files", "maxDepth": null}`,
	})
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	if d.DocumentType != "file" || d.Description != "Files." || d.DataRelease != "DR-42" || d.MaxDepth != 3 {
		t.Errorf("%+v", d)
	}
	if got, want := string(d.Table), `{"columns":[{"fieldName":"z"}],"maxResultsWindow":5,"rowIdFieldName":"id"}`; got != want {
		t.Errorf("table %s, want %s", got, want)
	}
	if got, want := string(d.Facets), `{"aggregations":[{"fieldName":"study__id"}]}`; got != want {
		t.Errorf("facets %s, want %s", got, want)
	}
	want := []string{
		"/table/columns in a.json is also set in z.json, which is read later and wins",
		"/documentType in a.json is also set in base.json, which wins",
		"/table/rowIdFieldName in z.json is also set in base.json, which wins",
	}
	if diff := cmp.Diff(want, d.Warnings); diff != "" {
		t.Errorf("warnings: want, got: %s", diff)
	}
}

func TestDeterministic(t *testing.T) {
	f := files{}
	for i := range 30 {
		f[fmt.Sprintf("%c/base.json", 'a'+i%26)] = sound
		f[fmt.Sprintf("%c/x%d.json", 'A'+i%26, i)] = `{"documentType": 5, "catalogId": "a", "unknown": 1, "maxDepth": -1}`
	}
	want := load(t, f, definition.Options{Reserved: []string{"b"}})
	for range 10 {
		if diff := cmp.Diff(want, load(t, f, definition.Options{Reserved: []string{"b"}})); diff != "" {
			t.Fatal(diff)
		}
	}
}
