package definition_test

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"tutti/internal/search/catalogue/definition"
)

const (
	smaller = "a configuration is far smaller: put data elsewhere"
	tooMuch = " is not read: 256 MiB and 2,000,000 values are the most that all catalogues may hold together"
	before  = "move what is not configuration elsewhere, there and in the folders before it"
)

func list(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }

// allocated returns the allocated bytes for reading files, and the only definition.
func allocated(t *testing.T, f files) (uint64, definition.Definition) {
	t.Helper()
	var at, then runtime.MemStats
	fsys := f.fs()
	runtime.ReadMemStats(&at)
	set, err := definition.LoadFS(fsys, "genomics", definition.Options{})
	runtime.ReadMemStats(&then)
	if err != nil || len(set.Definitions) != 1 {
		t.Fatalf("%v: %v", err, ids(set))
	}
	return then.TotalAlloc - at.TotalAlloc, set.Definitions[0]
}

// TestCostIsThatOfTheSize: the cost of reading a folder depends only on its size, whatever its files contain.
func TestCostIsThatOfTheSize(t *testing.T) {
	long, name := strings.Repeat("k", 200_000), strings.Repeat("u", 200)
	var members, others, objects, more strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `,"m%d":1`, i)
		fmt.Fprintf(&others, `,"m%d":2`, i)
		fmt.Fprintf(&objects, `,"m%d":{"a":1}`, i)
		fmt.Fprintf(&more, `,"m%d":{"a":2}`, i)
	}
	below := func(text string) string { return `{"` + long + `":{` + text[1:] + `}}` }
	small := files{"base.json": sound, "a.json": `{"x":{` + members.String()[1:] + `}}`}
	for i := range 200 {
		small[fmt.Sprintf("b%d.json", i)] = `{"x":{}}`
	}
	tests := map[string]struct {
		files files
		// warnings is the minimum number of warnings.
		warnings int
	}{
		"items below a long key":                {files{"base.json": sound, "x.json": `{"` + long + `":` + list(40_000) + `}`}, 1},
		"members below a long key":              {files{"base.json": sound, "x.json": below(members.String())}, 1},
		"set twice far below":                   {files{"base.json": sound, "x.json": strings.Repeat(`{"aa":`, 100) + `{"a":1` + strings.Repeat(`,"a":1`, 20_000) + strings.Repeat("}", 101)}, 2},
		"set twice below a long key":            {files{"base.json": sound, "x.json": below(strings.Repeat(`,"a":1`, 20_000))}, 2},
		"set in two files below a long key":     {files{"base.json": sound, "x.json": below(members.String()), "y.json": below(others.String())}, 2},
		"objects of two files below a long key": {files{"base.json": sound, "x.json": below(objects.String()), "y.json": below(more.String())}, 2},
		"small files over a large one":          {small, 1},
		"one unknown key many times":            {files{"base.json": sound, "x.json": `{"extended":[` + strings.Repeat(`{"fieldName":"a","`+name+`":1},`, 20_000) + `{"fieldName":"a"}]}`}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bytes, d := allocated(t, test.files)
			if bytes > 120<<20 {
				t.Errorf("%d MiB were needed", bytes>>20)
			}
			if d.Err != nil || len(d.Warnings) < test.warnings {
				t.Errorf("fault %v, warnings %q", d.Err, d.Warnings)
			}
		})
	}
}

func TestFolderThatIsTooLarge(t *testing.T) {
	large := "{" + strings.Repeat(" ", 12<<20) + "}"
	t.Run("bytes", func(t *testing.T) {
		set := load(t, files{
			"a/base.json": sound, "a/x.json": large, "a/y.json": large, "a/z.json": large, "b/base.json": sound, "b/x.json": large,
		}, definition.Options{})
		wantFault(t, named(t, set, "a"), "", "a holds more than 32 MiB of JSON files", smaller)
		if b := named(t, set, "b"); b.Err != nil {
			t.Error(b.Err)
		}
	})
	t.Run("values", func(t *testing.T) {
		quarter := list(249_990)
		f := files{"a/base.json": sound, "a/x.json": `{"x": ` + quarter + `}`, "a/y.json": `{"y": ` + quarter + `}`, "b/base.json": sound}
		if d := named(t, load(t, f, definition.Options{}), "a"); d.Err != nil {
			t.Error(d.Err)
		}
		f["a/z.json"] = `{"z": ` + list(20) + `}`
		set := load(t, f, definition.Options{})
		wantFault(t, named(t, set, "a"), "", "a holds more than 500,000 values", smaller)
		if b := named(t, set, "b"); b.Err != nil {
			t.Error(b.Err)
		}
	})
	t.Run("files that are too large", func(t *testing.T) {
		huge := strings.Repeat(" ", 17<<20)
		d := only(t, files{"base.json": sound, "x.json": huge, "y.json": huge})
		if wantFault(t, d, "", "x.json is over 16 MiB", smaller); len(d.Err.Violations) != 2 || d.DocumentType != "analysis" {
			t.Errorf("%+v", d.Err.Violations)
		}
	})
	t.Run("files that grow", func(t *testing.T) {
		set, err := definition.LoadFS(growing{files{"base.json": sound, "x.json": large, "y.json": large, "z.json": large}.fs()}, "genomics", definition.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantFault(t, named(t, set, "genomics"), "", "the top folder holds more than 32 MiB of JSON files", smaller)
	})
	t.Run("at the top", func(t *testing.T) {
		set := load(t, files{"base.json": sound, "x.json": large, "y.json": large, "z.json": large, "b/base.json": sound}, definition.Options{})
		wantFault(t, named(t, set, "genomics"), "", "the top folder holds more than 32 MiB of JSON files", smaller)
		if b := named(t, set, "b"); b.Err != nil {
			t.Error(b.Err)
		}
	})
}

func TestAllThatIsTooLarge(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		whole := strings.Repeat("\xFF", 16<<20)
		f := files{"h/base.json": sound, "j/base.json": sound}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "i"} {
			f[name+"/x.json"], f[name+"/y.json"] = whole, whole
		}
		f["b/z.json"] = "{}" // which is too much for one folder, and takes nothing from the others
		set := load(t, f, definition.Options{})
		if d := named(t, set, "h"); d.Err != nil {
			t.Error(d.Err)
		}
		wantFault(t, named(t, set, "b"), "", "b holds more than 32 MiB of JSON files", smaller)
		wantFault(t, named(t, set, "i"), "", "i/x.json is not valid UTF-8 at line 1, column 1", "save it as UTF-8")
		if d := named(t, set, "j"); d.Err != nil {
			t.Error(d.Err)
		}
		delete(f, "b/z.json")
		set = load(t, f, definition.Options{})
		wantFault(t, named(t, set, "i"), "", "i"+tooMuch, before)
		if d := named(t, set, "j"); d.Err != nil { // for which there is room
			t.Error(d.Err)
		}
		delete(f, "h/base.json")
		set = load(t, f, definition.Options{})
		wantFault(t, named(t, set, "j"), "", "j"+tooMuch, before)
	})
	t.Run("values", func(t *testing.T) {
		most := `{"x": ` + list(499_990) + `}`
		f := files{"z/base.json": sound}
		for _, name := range []string{"a", "b", "c", "d"} {
			f[name+"/base.json"], f[name+"/x.json"] = sound, most
		}
		f["e/base.json"], f["e/x.json"] = sound, `{"x": `+list(50)+`}`
		set := load(t, f, definition.Options{})
		for id, failed := range map[string]bool{"a": false, "d": false, "e": true, "z": true} {
			if !failed {
				if d := named(t, set, id); d.Err != nil {
					t.Errorf("%s: %v", id, d.Err)
				}
				continue
			}
			wantFault(t, named(t, set, id), "", id+tooMuch, before)
		}
	})
}

func TestTooManyNames(t *testing.T) {
	for folder, label := range map[string]string{"genes/": "genes", "": "the top folder"} {
		t.Run(label, func(t *testing.T) {
			f := files{folder + "base.json": sound}
			for i := range 20_000 {
				f[fmt.Sprintf("%sreads-%d.txt", folder, i)] = ""
			}
			d := only(t, f)
			wantFault(t, d, "", label+" is not read: it holds more than 20000 files and folders", smaller)
			if want := (map[string]string{"genes/": "genes", "": "genomics"})[folder]; d.ID != want {
				t.Errorf("id %q, want %q", d.ID, want)
			}
			delete(f, folder+"reads-7.txt")
			if d := only(t, f); d.Err != nil {
				t.Error(d.Err)
			}
		})
	}
}

// watched is a file system that measures memory when a file is opened.
type watched struct {
	fstest.MapFS
	name string
	kept *uint64
}

func (w watched) Open(name string) (fs.File, error) {
	if name == w.name {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		*w.kept = now.HeapAlloc
	}
	return w.MapFS.Open(name)
}

func TestFolderThatWasReadIsLetGo(t *testing.T) {
	f := files{"z/base.json": sound}
	for _, name := range []string{"a", "b", "c"} {
		f[name+"/base.json"], f[name+"/x.json"] = sound, `{"extended": [{"fieldName": "a", "displayValues": {"x": `+list(400_000)+`}}]}`
	}
	fsys := f.fs()
	var first, last uint64
	for name, kept := range map[string]*uint64{"a/base.json": &first, "z/base.json": &last} {
		if _, err := definition.LoadFS(watched{fsys, name, kept}, "genomics", definition.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if last > first+(20<<20) {
		t.Errorf("%d MiB are kept of three folders", (last-first)>>20)
	}
}

// TestReadDirThatIsNone: a file system may not support listing folders.
func TestReadDirThatIsNone(t *testing.T) {
	if _, err := definition.LoadFS(fileOnly{}, "genomics", definition.Options{}); err == nil {
		t.Error("no error")
	}
}

type fileOnly struct{}

func (fileOnly) Open(string) (fs.File, error) {
	file, err := fstest.MapFS{"x": &fstest.MapFile{}}.Open("x")
	return file, err
}

// growing is a file system whose files were empty when their sizes were checked.
type growing struct{ fstest.MapFS }

func (g growing) Stat(name string) (fs.FileInfo, error) {
	info, err := g.MapFS.Stat(name)
	return empty{info}, err
}

type empty struct{ fs.FileInfo }

func (empty) Size() int64 { return 0 }
