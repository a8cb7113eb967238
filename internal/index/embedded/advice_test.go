package embedded_test

import (
	"fmt"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
)

func wantHint(t *testing.T, err error, hint string) {
	t.Helper()
	if core.HintOf(err) != hint {
		t.Errorf("the hint of %v is %q, want %q", err, core.HintOf(err), hint)
	}
}

// rebuilt replaces the index of an alias by a new one with a mapping file, as a rebuild does.
func rebuilt(t *testing.T, x *embedded.Index, alias, file string) {
	t.Helper()
	spec := index.Spec{Alias: alias, Mapping: []byte(file)}
	ensure(t, x, index.Spec{Alias: core.NextAlias(alias), Replaces: alias, Mapping: spec.Mapping})
	if err := x.Swap(t.Context(), spec, core.NextAlias(alias), ""); err != nil {
		t.Fatal(err)
	}
	ensure(t, x, spec)
}

// TestAdviceOfContradictions: the index of a rebuild has the mapping file that the one before contradicts.
func TestAdviceOfContradictions(t *testing.T) {
	t.Parallel()
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"n":{"type":"long"}}}`)})
	const file = `{"properties":{"n":{"type":"keyword"}}}`
	err := x.Ensure(t.Context(), index.Spec{Alias: "a", Mapping: []byte(file)})
	if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != `the mapping file contradicts the mapping of a: the field "n" is long in the index and keyword in the mapping` {
		t.Errorf("Ensure returned %v", err)
	}
	wantHint(t, err, "rebuild the repository's index, which creates a new one with the mapping file")
	rebuilt(t, x, "a", file)
	if got := write(t, x, "a", put("1", 1, `{"n":"x"}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Errorf("%+v", got)
	}
}

// TestAdviceOfAnalyzedText: a sub-field of type keyword has the facets and the order that a text has not.
func TestAdviceOfAnalyzedText(t *testing.T) {
	t.Parallel()
	x := open(t, embedded.Config{})
	ensure(t, x, index.Spec{Alias: "a", Mapping: []byte(`{"properties":{"t":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}`)})
	write(t, x, "a", put("1", 1, `{"t":"b c"}`), put("2", 1, `{"t":"a d"}`))
	for hint, f := range map[string]query.Field{"use a sub-field of type keyword": {Path: "t", Type: "text"}, "": {Path: "t.raw", Type: "keyword"}} {
		sorted := index.SearchRequest{Hits: &index.HitsRequest{Size: 2, Sort: []index.Sort{{Field: f}}}}
		facet := index.SearchRequest{Facets: []index.Facet{{Field: f, Buckets: &index.Buckets{Max: 2}}}}
		for _, req := range []index.SearchRequest{sorted, facet} {
			got, err := x.Search(t.Context(), "a", []index.SearchRequest{req})
			wantHint(t, err, hint)
			if fits := hint == ""; fits != (err == nil) || fits && req.Hits != nil && got[0].Hits[0].ID != "2" || fits && req.Hits == nil && len(got[0].Facets[0].Buckets) != 2 {
				t.Errorf("%s: %+v, %v", f.Path, got, err)
			}
		}
	}
}

// TestAdviceOfLimits: a document that exceeds a limit of the index is accepted after any of the changes that its hint names.
func TestAdviceOfLimits(t *testing.T) {
	t.Parallel()
	file := func(fields int, parameter string) string {
		return fmt.Sprintf(`{"settings":{"index.mapping.total_fields.limit":%d},"mappings":{"properties":{"o":{"type":"object"%s}}}}`, fields, parameter)
	}
	few, more := mapping.DefaultLimits(), mapping.DefaultLimits()
	few.Fields, more.Fields = 3, 5
	for name, c := range map[string]struct {
		before, after string
		limits        mapping.Limits
		document      string
	}{
		"less in the document":       {file(3, ""), file(3, ""), few, `{"o":{"a":1}}`},
		"mapped with enabled: false": {file(3, ""), file(3, `,"enabled":false`), few, `{"o":{"a":1,"b":1,"c":1}}`},
		"limit of the configuration": {`{"properties":{}}`, `{"properties":{}}`, more, `{"o":{"a":1,"b":1,"c":1}}`},
		"limit of the mapping file":  {file(3, ""), file(5, ""), few, `{"o":{"a":1,"b":1,"c":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			x := open(t, embedded.Config{Dir: dir, Limits: few})
			ensure(t, x, index.Spec{Alias: "a", Mapping: []byte(c.before)})
			got := write(t, x, "a", put("1", 1, `{"o":{"a":1,"b":1,"c":1}}`))
			const hint = "the index takes at most 3 fields: leave out what is not searched, or map it with enabled: false in the mapping file; or raise " +
				"index.limits.fields and rebuild the index, or the setting index.mapping.total_fields.limit where the mapping file or an index of " +
				"Elasticsearch has it; then retry"
			if got[0].Outcome != core.OutcomeRejected || got[0].Hint != hint {
				t.Errorf("%+v", got)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			x = open(t, embedded.Config{Dir: dir, Limits: c.limits})
			rebuilt(t, x, "a", c.after)
			if got := write(t, x, "a", put("1", 1, c.document)); got[0].Outcome != core.OutcomeIndexed {
				t.Errorf("%+v", got)
			}
		})
	}
}
