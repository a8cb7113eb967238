package definition_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sound is a base.json with only the required keys.
const sound = `{"documentType": "analysis", "esIndex": "analyses"}`

// files are the contents of files by their paths.
type files map[string]string

func (f files) fs() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return fsys
}

// load reads files that stand in a folder called genomics.
func load(t *testing.T, f files, opts definition.Options) definition.Set {
	t.Helper()
	set, err := definition.LoadFS(f.fs(), "genomics", opts)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// only loads files of a single catalogue.
func only(t *testing.T, f files) definition.Definition {
	t.Helper()
	set := load(t, f, definition.Options{})
	if len(set.Definitions) != 1 {
		t.Fatalf("%d definitions: %+v", len(set.Definitions), set.Definitions)
	}
	return set.Definitions[0]
}

// named returns the definition of an id.
func named(t *testing.T, set definition.Set, id string) definition.Definition {
	t.Helper()
	for _, d := range set.Definitions {
		if d.ID == id {
			return d
		}
	}
	t.Fatalf("no definition %q: %v", id, ids(set))
	return definition.Definition{}
}

func ids(set definition.Set) []string {
	var all []string
	for _, d := range set.Definitions {
		all = append(all, d.ID)
	}
	return all
}

// wantFault compares the first violation of a definition.
func wantFault(t *testing.T, d definition.Definition, pointer, message, hint string) {
	t.Helper()
	if d.Err == nil {
		t.Fatalf("%s has no fault, want %s", d.ID, message)
	}
	if d.Err.Code != core.CodeInvalid {
		t.Errorf("code %s", d.Err.Code)
	}
	got := []string{d.Err.Violations[0].Pointer, d.Err.Message, d.Err.Hint}
	if diff := cmp.Diff([]string{pointer, message, hint}, got); diff != "" {
		t.Errorf("pointer, message, hint: want, got: %s", diff)
	}
	if d.Err.Violations[0].Message != d.Err.Message {
		t.Errorf("the first violation is %q, the fault %q", d.Err.Violations[0].Message, d.Err.Message)
	}
}

func wantGolden(t *testing.T, file string, set definition.Set) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(set); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s: want, got: %s", file, diff)
	}
}
