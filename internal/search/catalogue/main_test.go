package catalogue_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed returns the same mapping, or the same error, for every index.
type fixed struct {
	raw string
	err error
}

func (f fixed) Mapping(context.Context, string) (json.RawMessage, error) {
	if f.err != nil {
		return nil, f.err
	}
	return json.RawMessage(f.raw), nil
}

// minimal is a definition without optional settings.
func minimal(id string) definition.Definition {
	return definition.Definition{ID: id, DocumentType: "analysis", Index: id}
}

// look returns the Model of a definition and a mapping.
func look(t *testing.T, d definition.Definition, raw string) *catalogue.Model {
	t.Helper()
	m, problem := catalogue.Load(t.Context(), d, fixed{raw: raw})
	if problem != nil {
		t.Fatalf("failed: %+v", problem)
	}
	return m
}

// refused fails unless Load returns this problem and no Model.
func refused(t *testing.T, d definition.Definition, m catalogue.Mappings, want core.CatalogueProblem) {
	t.Helper()
	model, problem := catalogue.Load(t.Context(), d, m)
	if model != nil || problem == nil {
		t.Fatalf("got %v, %v, want %+v", model, problem, want)
	}
	if diff := cmp.Diff(want, *problem); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func warned(t *testing.T, m *catalogue.Model, want ...string) {
	t.Helper()
	got := m.Warnings()
	if len(got) == 0 {
		got = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func file(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// golden compares a value, as indented JSON, with a file.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(file(t, name), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
