package embedded_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

// TestSourcesAreBounded requests documents that are too large together, in several ways.
func TestSourcesAreBounded(t *testing.T) {
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Known: mapping.Song()}); err != nil {
		t.Fatal(err)
	}
	b := core.Batch{Index: "a"}
	for i := range 4 {
		item := core.BatchItem{Op: core.OpIndex, ID: fmt.Sprint(i), Version: 1, Start: len(b.Body)}
		document := fmt.Sprintf(`{"analysisId":"%d","studyId":"S","pad":["%s"]}`, i, strings.Repeat(strings.Repeat("x", 1000)+`","`, 11_000))
		b.Body, item.DocStart, item.DocEnd = x.Encode(b.Body, core.Write{Op: core.OpIndex, ID: item.ID, Version: 1, Document: []byte(document)})
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	if _, err := x.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	hits := index.SearchRequest{Hits: &index.HitsRequest{Size: 4}}
	tops := index.SearchRequest{Facets: []index.Facet{{Field: query.Field{Path: "studyId", Type: "keyword"}, Buckets: &index.Buckets{Max: 1, TopHits: 4}}}}
	for name, c := range map[string]struct {
		reqs []index.SearchRequest
		fits bool
	}{
		"once": {[]index.SearchRequest{hits}, true}, "many times": {[]index.SearchRequest{hits, hits, hits, hits}, false},
		"of buckets": {[]index.SearchRequest{tops, tops, tops, tops}, false}, "only ids": {[]index.SearchRequest{{Hits: &index.HitsRequest{Size: 4, Source: index.Source{None: true}}}}, true},
	} {
		_, err := x.Search(t.Context(), "a", c.reqs)
		if c.fits != (err == nil) || err != nil && (core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != "the requested documents together exceed 128 MB") {
			t.Errorf("%s: %v", name, err)
		}
		if !c.fits {
			wantHint(t, err, "request fewer documents at once") // as "once" does
		}
	}
}

// TestLargeDocumentIsPackedOnce checks that encoding a large document allocates about its size.
func TestLargeDocumentIsPackedOnce(t *testing.T) {
	x, err := embedded.Open(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Ensure(t.Context(), index.Spec{Alias: "a", Known: mapping.Song()}); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range uint64(400_000) {
		fmt.Fprintf(&text, `,"%x"`, i*0x9e3779b97f4a7c15) // incompressible
	}
	b := batchOf(x, "a", core.Write{ID: "1", Version: 1, Document: []byte(`{"analysisId":"1","studyId":"S","pad":["x"` + text.String() + `]}`)})
	embedded.Prepare(x, b) // adds its fields to the mapping
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	embedded.Prepare(x, b)
	runtime.ReadMemStats(&after)
	if took, size := after.TotalAlloc-before.TotalAlloc, uint64(len(b.Body)); took > size*3/2 {
		t.Errorf("%d bytes were allocated for a document of %d", took, size)
	}
}
