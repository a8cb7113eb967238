package evaluate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
)

// countingContext is a context that counts calls of Err, and ends at the call number most unless that is 0.
type countingContext struct {
	context.Context //nolint:containedctx // it is a context
	times           atomic.Int64
	most            int64
}

// Err counts its calls.
func (a *countingContext) Err() error {
	if n := a.times.Add(1); a.most > 0 && n >= a.most {
		return context.Canceled
	}
	return a.Context.Err()
}

// TestPatternsCheckContext counts how often pattern matching checks the context: once per batch of matches.
func TestPatternsCheckContext(t *testing.T) {
	const values, of = 5000, 200
	many := make([]sqon.Pattern, 0, of)
	for i := range of {
		many = append(many, sqon.Pattern(fmt.Sprintf("*no%d*", i)))
	}
	docs := make([]document, 0, values)
	for i := range values {
		docs = append(docs, document{id: fmt.Sprint(i), body: map[string]any{"code": fmt.Sprint("c", i), "size": i}})
	}
	parts := parts(t, docs)
	const batches = values * of / 4096
	for _, path := range []string{"code", "size"} {
		req := []index.SearchRequest{{Total: true, Filter: patterns(true, path, many...)}}
		t.Run(path+" to the end", func(t *testing.T) {
			ctx := &countingContext{Context: t.Context()}
			if answers, err := evaluate.Search(ctx, parts, req); err != nil || answers[0].Total != 0 {
				t.Fatalf("%v, %v", answers, err)
			}
			if n := ctx.times.Load(); n < batches {
				t.Errorf("checked the context %d times in %d pattern matches", n, values*of)
			}
		})
		t.Run(path+" cancelled", func(t *testing.T) {
			const most = batches / 2
			ctx := &countingContext{Context: t.Context(), most: most}
			_, err := evaluate.Search(ctx, parts, req)
			if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the search was cancelled before it was complete" || !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if n := ctx.times.Load(); n > most+10 {
				t.Errorf("checked the context %d more times after it had ended", n-most)
			}
		})
	}
}

// packed returns parts of documents with so many codes that they are packed.
func packed(t *testing.T, n int) []evaluate.Part {
	t.Helper()
	docs := make([]document, 0, 4*n)
	for i := range 4 * n {
		docs = append(docs, document{id: fmt.Sprint(i), body: map[string]any{"code": fmt.Sprintf("EGAN%08x", uint32(i%(3*n))*2654435761)}})
	}
	cut := parts(t, docs, n, 2*n, 3*n)
	merge := func(parts ...evaluate.Part) evaluate.Part {
		var segments []*segment.Segment
		for _, p := range parts {
			segments = append(segments, p.Segment)
		}
		return evaluate.Part{Segment: segment.Merge(segments, nil)}
	}
	return []evaluate.Part{merge(cut[0], cut[1]), merge(cut[2], cut[3])}
}

// TestTextReadsDoNotAllocate scans all texts of a column without an allocation per text.
func TestTextReadsDoNotAllocate(t *testing.T) {
	const n = 4000
	parts := packed(t, n)
	code := query.Field{Path: "code", Type: "keyword"}
	want := 0
	for i := range 4 * n {
		if strings.Contains(fmt.Sprintf("EGAN%08x", uint32(i%(3*n))*2654435761), "a7") {
			want++
		}
	}
	for name, c := range map[string]struct {
		req   index.SearchRequest
		check func(a evaluate.Result) bool
	}{
		"a pattern": {
			index.SearchRequest{Total: true, Filter: &query.Node{Op: query.Patterns, Field: code, Patterns: []sqon.Pattern{"*A7*"}, Fold: true}},
			func(a evaluate.Result) bool { return a.Total == int64(want) },
		},
		"buckets of several parts": {
			index.SearchRequest{Facets: []index.Facet{{Field: code, Buckets: &index.Buckets{Max: 3}, Cardinality: 1}}},
			func(a evaluate.Result) bool {
				f := a.Facets[0]
				return f.Cardinality == 3*n && len(f.Buckets) == 3 && f.Buckets[0].Count == 2 && f.Buckets[0].Key < f.Buckets[1].Key
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := testing.AllocsPerRun(3, func() {
				answers, err := evaluate.Search(t.Context(), parts, []index.SearchRequest{c.req})
				if err != nil || !c.check(answers[0]) {
					t.Fatalf("%+v, %v", answers, err)
				}
			})
			if got > n/4 {
				t.Errorf("%v allocations for %d texts", got, 4*n)
			}
		})
	}
}
