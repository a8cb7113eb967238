package selection

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

type fourFields struct{}

func (fourFields) Mapping(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"properties":{"a":{"type":"keyword"},"b":{"type":"keyword"},"c":{"type":"keyword"},"d":{"type":"keyword"}}}`), nil
}

// TestJoinedProjections: fields of several selections are requested once, and a cached projection is not changed.
func TestJoinedProjections(t *testing.T) {
	m, problem := catalogue.Load(t.Context(), definition.Definition{ID: "c", DocumentType: "d", Index: "i"}, fourFields{})
	if problem != nil {
		t.Fatal(problem)
	}
	kept := &Projection{model: m, names: make([]string, 0, 8), paths: make([]string, 0, 8)}
	kept.names, kept.paths = append(kept.names, "a", "b"), append(kept.paths, "a", "b")
	other := &Projection{model: m, names: []string{"b", "c"}, paths: []string{"b", "c"}}
	first, second := &Projection{model: m}, &Projection{model: m}
	first.Join(kept)
	second.Join(kept)
	first.Join(other)
	second.add("d")
	first.add("a")
	if want := []string{"a", "b", "c"}; !slices.Equal(first.names, want) || !slices.Equal(first.paths, want) {
		t.Errorf("needed are %v at %v", first.names, first.paths)
	}
	if want := []string{"a", "b", "d"}; !slices.Equal(second.names, want) || !slices.Equal(second.paths, want) {
		t.Errorf("needed are %v at %v beside another", second.names, second.paths)
	}
	if want := []string{"a", "b"}; !slices.Equal(kept.names, want) || !slices.Equal(kept.paths, want) {
		t.Errorf("what is kept became %v", kept.names)
	}
}
