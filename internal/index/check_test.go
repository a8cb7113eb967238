package index_test

import (
	"math"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

func field(path, of string, nested ...string) query.Field {
	return query.Field{Path: path, Type: of, Nested: nested}
}

func TestSortCheck(t *testing.T) {
	for name, c := range map[string]struct {
		sort index.Sort
		want string
	}{
		"a keyword":                      {index.Sort{Field: field("k", "keyword"), Mode: "max"}, ""},
		"a median":                       {index.Sort{Field: field("n", "long"), Mode: "median"}, ""},
		"a sum in elements":              {index.Sort{Field: field("files.n", "long", "files"), Mode: "sum"}, ""},
		"an unsigned integer":            {index.Sort{Field: field("u", "unsigned_long"), Mode: "min"}, ""},
		"analyzed text":                  {index.Sort{Field: field("t", "text")}, "the field \"t\" is analyzed text, which supports neither facets nor sorting"},
		"an unknown mode":                {index.Sort{Field: field("n", "long"), Mode: "mean"}, "the sort mode of the field \"n\" must be min, max, sum, avg or median"},
		"a sum of texts":                 {index.Sort{Field: field("k", "keyword"), Mode: "sum"}, "the field \"k\" has text values, which sort only by min or max"},
		"an average of unsigned numbers": {index.Sort{Field: field("u", "unsigned_long"), Mode: "avg"}, "the field \"u\" has unsigned integers, which sort only by min or max"},
		"a median in elements":           {index.Sort{Field: field("files.n", "long", "files"), Mode: "median"}, "the field \"files.n\" is nested, and nested fields do not sort by median"},
	} {
		t.Run(name, func(t *testing.T) { wantInvalid(t, c.sort.Check(), c.want) })
	}
}

func TestFacetCheck(t *testing.T) {
	n := field("n", "long")
	for name, c := range map[string]struct {
		facet index.Facet
		want  string
	}{
		"as much as there is":    {index.Facet{Field: n, Buckets: &index.Buckets{Max: index.MaxBuckets, TopHits: index.MaxTopHits}, Histogram: index.MinInterval}, ""},
		"missing text":           {index.Facet{Field: field("t", "text"), Missing: true}, ""},
		"values of text":         {index.Facet{Field: field("t", "text"), Cardinality: 1}, "the field \"t\" is analyzed text, which supports neither facets nor sorting"},
		"no buckets":             {index.Facet{Field: n, Buckets: &index.Buckets{}}, "the number of buckets of the field \"n\" must be between 1 and 300000"},
		"too many buckets":       {index.Facet{Field: n, Buckets: &index.Buckets{Max: index.MaxBuckets + 1}}, "the number of buckets of the field \"n\" must be between 1 and 300000"},
		"too many documents":     {index.Facet{Field: n, Buckets: &index.Buckets{Max: 1, TopHits: index.MaxTopHits + 1}}, "the number of top hits per bucket of the field \"n\" must be between 0 and 100"},
		"fewer documents than 0": {index.Facet{Field: n, Buckets: &index.Buckets{Max: 1, TopHits: -1}}, "the number of top hits per bucket of the field \"n\" must be between 0 and 100"},
		"too small an interval":  {index.Facet{Field: n, Histogram: index.MinInterval / 2}, "the histogram interval of the field \"n\" must be at least 1e-100 and finite"},
		"a negative interval":    {index.Facet{Field: n, Histogram: -1}, "the histogram interval of the field \"n\" must be at least 1e-100 and finite"},
		"an endless interval":    {index.Facet{Field: n, Histogram: math.Inf(1)}, "the histogram interval of the field \"n\" must be at least 1e-100 and finite"},
		"no number":              {index.Facet{Field: n, Histogram: math.NaN()}, "the histogram interval of the field \"n\" must be at least 1e-100 and finite"},
	} {
		t.Run(name, func(t *testing.T) { wantInvalid(t, c.facet.Check(), c.want) })
	}
	asked := index.Facet{Field: n, Histogram: 0.5}
	wantInvalid(t, asked.TooManyIntervals(), "a histogram of the field \"n\" with an interval of 0.5 would have more than 10000 intervals")
}

// wantInvalid fails unless err is CodeInvalid with a message, or none where that is "".
func wantInvalid(t *testing.T, err error, message string) {
	t.Helper()
	if message == "" {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != message {
		t.Errorf("got %v, want %q", err, message)
	}
}
