package embedded_test

import (
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// TestGrown checks that Config.Grown is called when a document extends the mapping, and not for other documents.
func TestGrown(t *testing.T) {
	var told []string
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir(), Grown: func(alias string) { told = append(told, alias) }})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for _, alias := range []string{"a", "b"} {
		if err := x.Ensure(t.Context(), index.Spec{Alias: alias, Known: mapping.Song()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		alias, document string
		want            []string
	}{
		{"a", `{"analysisId":"1"}`, nil},
		{"a", `{"analysisId":"1","new":1}`, []string{"a"}},
		{"a", `{"analysisId":"1","new":2}`, nil},
		{"b", `{"analysisId":"1","new":"x"}`, []string{"b"}},
	} {
		told = nil
		b := core.Batch{Index: c.alias}
		item := core.BatchItem{Op: core.OpIndex, ID: "1", Version: 1}
		b.Body, item.DocStart, item.DocEnd = x.Encode(nil, core.Write{Op: core.OpIndex, ID: "1", Version: 1, Document: []byte(c.document)})
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
		if _, err := x.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(told, c.want) {
			t.Errorf("%s: called with %v", c.document, told)
		}
	}
}
