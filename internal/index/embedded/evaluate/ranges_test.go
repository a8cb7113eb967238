package evaluate_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
)

// edge returns a bound of a range; nil is none.
func (w world) edge() *float64 {
	if w.IntN(8) == 0 {
		return nil
	}
	v := float64(w.IntN(160)-60) / 4
	return &v
}

// TestRangesTogether counts adjacent, nested and empty ranges in one request, in single- and multi-valued columns of documents and
// of their elements.
func TestRangesTogether(t *testing.T) {
	for seed := range uint64(4) {
		w := world{rand.New(rand.NewPCG(seed, 31))}
		docs := w.documents(120)
		o := newOracle(t, docs)
		for _, path := range []string{"size", "sizes", "score", "weights", "huge", "ok", "files.bytes", "files.ratios", "files.parts.n"} {
			for _, n := range []int{1, 3, 40, 300} {
				f := index.Facet{Field: field(path)}
				for range n {
					f.Ranges = append(f.Ranges, index.NumberRange{From: w.edge(), To: w.edge()})
				}
				req := index.SearchRequest{Filter: exists("color"), Facets: []index.Facet{f}}
				if len(f.Field.Nested) == 1 {
					req.Facets = append(req.Facets, f)
					req.Facets[1].Elements = exists("files.name")
				}
				want := o.expect(req)
				for layout, of := range map[string][]evaluate.Part{"whole": parts(t, docs), "spread": parts(t, docs, 17, 80)} {
					if diff := cmp.Diff(want.facets, answer(t, of, req).Facets); diff != "" {
						t.Fatalf("seed %d, %d ranges of %s, %s:\n%s", seed, n, path, layout, diff)
					}
				}
			}
		}
	}
}

// TestRangesShareAPass counts the passes over the documents, which must not be one per range.
func TestRangesShareAPass(t *testing.T) {
	const documents, ranges = 20_000, 1000
	of := parts(t, many(documents))
	for _, path := range []string{"size", "sizes", "files.bytes"} {
		t.Run(path, func(t *testing.T) {
			f := index.Facet{Field: field(path)}
			for i := range ranges {
				from, to := float64(i)/2, float64(i)/2+100
				f.Ranges = append(f.Ranges, index.NumberRange{From: &from, To: &to})
			}
			ctx := &countingContext{Context: t.Context()}
			if _, err := evaluate.Search(ctx, of, []index.SearchRequest{{Facets: []index.Facet{f}}}); err != nil {
				t.Fatal(err)
			}
			// Each pass checks the context once per batch of 4,096 documents, and once at its end.
			if passes := ctx.times.Load() / (documents/4096 + 2); passes > 20 {
				t.Errorf("the documents were read %d times", passes)
			}
		})
	}
}
