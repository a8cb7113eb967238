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

// TestRangesTogether counts many ranges at once, side by side, inside of each other and empty ones, in columns of one value and of
// several, of documents and of their elements.
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

// TestRangesLookOnce: the more ranges there are, the less often documents are looked at for each.
func TestRangesLookOnce(t *testing.T) {
	const documents, ranges = 20_000, 1000
	of := parts(t, many(documents))
	for _, path := range []string{"size", "sizes", "files.bytes"} {
		t.Run(path, func(t *testing.T) {
			f := index.Facet{Field: field(path)}
			for i := range ranges {
				from, to := float64(i)/2, float64(i)/2+100
				f.Ranges = append(f.Ranges, index.NumberRange{From: &from, To: &to})
			}
			ctx := &nodeScope{Context: t.Context()}
			if _, err := evaluate.Search(ctx, of, []index.SearchRequest{{Facets: []index.Facet{f}}}); err != nil {
				t.Fatal(err)
			}
			// Each look asks once for a batch of 4,096 documents, and once at its end.
			if looks := ctx.times.Load() / (documents/4096 + 2); looks > 20 {
				t.Errorf("the documents were looked at %d times", looks)
			}
		})
	}
}
