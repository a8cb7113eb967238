package evaluate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/tools/testkit"
)

// TestSearchAgainstOracle compares random requests with the oracle, in one segment and spread over several.
func TestSearchAgainstOracle(t *testing.T) {
	for seed := range uint64(testkit.Cases(60)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := world{rand.New(rand.NewPCG(seed, 7))}
			docs := w.documents([]int{1, 20, 90, 400}[w.IntN(4)])
			o := newOracle(t, docs)
			whole := parts(t, docs)
			cuts := []int{}
			for range min(4, len(docs)-1) {
				cuts = append(cuts, w.IntN(len(docs)))
			}
			slices.Sort(cuts)
			spread := parts(t, docs, cuts...)
			for range 12 {
				reqs := []index.SearchRequest{w.request(), w.request()}
				wants := []expectation{o.expect(reqs[0]), o.expect(reqs[1])}
				for name, of := range map[string][]evaluate.Part{"whole": whole, "spread": spread} {
					answers, err := evaluate.Search(t.Context(), of, reqs)
					if err != nil {
						t.Fatal(err)
					}
					for i := range reqs {
						wants[i].compare(t, fmt.Sprintf("%s, request %d", name, i), answers[i])
						wants[i].compareStream(t, of)
					}
				}
			}
		})
	}
}

// expectation is the oracle's result for a request.
type expectation struct {
	req    index.SearchRequest
	ids    []string
	facets []index.FacetResult
}

func (o oracle) expect(req index.SearchRequest) expectation {
	e := expectation{req: req}
	var sorts []index.Sort
	if req.Hits != nil {
		sorts = req.Hits.Sort
	}
	docs := o.found(req.Filter)
	for _, f := range req.Facets {
		e.facets = append(e.facets, o.facet(f, docs))
	}
	o.sort(docs, sorts)
	for _, d := range docs {
		e.ids = append(e.ids, d.id)
	}
	return e
}

// compare compares a result with the oracle's.
func (e expectation) compare(t *testing.T, name string, got evaluate.Result) {
	t.Helper()
	filter := show(e.req.Filter)
	if want := int64(len(e.ids)); e.req.Total && got.Total != want {
		t.Fatalf("%s: total %d, want %d\n%s", name, got.Total, want, filter)
	}
	for i, f := range e.req.Facets {
		if diff := cmp.Diff(e.facets[i], got.Facets[i], cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Fatalf("%s: facet %+v\nelements %s\nof %s\n%s", name, f, show(f.Elements), filter, diff)
		}
		for j, b := range got.Facets[i].Buckets {
			var ids []string
			for _, hit := range b.TopHits {
				ids = append(ids, hit.ID)
			}
			if len(ids) > 0 && !slices.Equal(ids, idsOf(got.TopRefs[i][j])) {
				t.Fatalf("%s: top hits %v at %v", name, ids, got.TopRefs[i][j])
			}
		}
	}
	if h := e.req.Hits; h != nil && len(h.Sort) > 0 {
		want := e.ids[min(h.From, len(e.ids)):]
		want = want[:min(h.Size, len(want))]
		if diff := cmp.Diff(want, idsOf(got.Refs), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: order %+v of %s\n%s", name, h.Sort, filter, diff)
		}
	}
}

func (e expectation) compareStream(t *testing.T, of []evaluate.Part) {
	t.Helper()
	if e.req.Hits == nil {
		return
	}
	want, got := slices.Clone(e.ids), []string{}
	stream := index.StreamRequest{Filter: e.req.Filter, Sort: e.req.Hits.Sort}
	last := uint64(0)
	err := evaluate.Stream(t.Context(), of, stream, func(refs []evaluate.DocumentRef, hits []index.Hit) error {
		for i, p := range refs {
			if len(stream.Sort) == 0 && p.Number <= last || hits[i].ID != p.ID {
				t.Fatalf("%v after number %d, as hit %q", p, last, hits[i].ID)
			}
			last = p.Number
		}
		got = append(got, idsOf(refs)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(stream.Sort) == 0 {
		slices.Sort(want)
		slices.Sort(got)
	}
	if slices.Equal(want, got) { // a diff is slow
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("stream in order %+v of %s\n%s", stream.Sort, show(e.req.Filter), diff)
	}
}

func idsOf(refs []evaluate.DocumentRef) []string {
	var ids []string
	for _, p := range refs {
		ids = append(ids, p.ID)
	}
	return ids
}

// show renders a filter.
func show(n *query.Node) string {
	if n == nil {
		return "all"
	}
	children := ""
	for _, c := range n.Children {
		children += " " + show(c)
	}
	what := ""
	switch n.Op {
	case query.Terms:
		what = fmt.Sprintf(" %q", n.Terms)
	case query.Range:
		what = fmt.Sprintf(" %+v %+v", n.From, n.To)
	case query.Patterns:
		what = fmt.Sprintf(" %q %v", n.Patterns, n.Fold)
	default:
	}
	names := []string{"everything", "nothing", "and", "or", "not", "some", "terms", "range", "patterns", "exists"}
	return "(" + names[n.Op] + " " + n.Path + n.Field.Path + what + children + ")"
}

// scopes are the paths with rows and their fields; each is nested in those that it starts with.
func scopes() map[string][]string {
	return map[string][]string{
		"":             {"color", "tags", "code", "rare", "size", "sizes", "score", "weights", "day", "instant", "ok", "huge", "_id", "nowhere"},
		"files":        {"files.kind", "files.name", "files.bytes", "files.ratios"},
		"files.parts":  {"files.parts.letter", "files.parts.n"},
		"donor.visits": {"donor.visits.site", "donor.visits.on"},
	}
}

func (w world) field(of []string) query.Field { return field(of[w.IntN(len(of))]) }

// filter returns a random filter in a scope.
func (w world) filter(scope string, depth int) *query.Node {
	children := func() []*query.Node {
		var list []*query.Node
		for range 1 + w.IntN(3) {
			list = append(list, w.filter(scope, depth-1))
		}
		return list
	}
	deeper := map[string][]string{"": {"files", "files.parts", "donor.visits"}, "files": {"files.parts"}}[scope]
	switch n := w.IntN(12); {
	case n == 0:
		return &query.Node{Op: []query.Op{query.Everything, query.Nothing}[w.IntN(2)]}
	case n < 3 && depth > 0:
		return &query.Node{Op: query.And, Children: children()}
	case n < 5 && depth > 0:
		return &query.Node{Op: query.Or, Children: children()}
	case n < 7 && depth > 0:
		return &query.Node{Op: query.Not, Children: []*query.Node{w.filter(scope, depth-1)}}
	case n < 9 && depth > 0 && len(deeper) > 0:
		path := deeper[w.IntN(len(deeper))]
		return &query.Node{Op: query.Some, Path: path, Children: []*query.Node{w.filter(path, depth-1)}}
	default:
		return w.clause(w.field(scopes()[scope]))
	}
}

func (w world) clause(f query.Field) *query.Node {
	n := &query.Node{Field: f, Op: query.Exists}
	texts := !query.Keyed(f.Type)
	switch kind := w.IntN(4); {
	case kind == 0 || f.Path == "_id" && kind > 1:
	case texts && kind == 1:
		n.Op, n.Fold = query.Patterns, w.IntN(2) == 0
		for range 1 + w.IntN(2) {
			n.Patterns = append(n.Patterns, sqon.Pattern(w.pick("*", "*b*", "B*", "a*", "ab", "?", "*e*e*", `b\*`, "C-0*", "*-1", "file-1?.bam", "*É*")))
		}
	case texts:
		n.Op, n.Terms = query.Terms, w.terms("red", "green", "", "a", "abc", "b*", "Ä", "x", "y", "bam", "ear", "file-1.bam", "zzz")
	case f.Type == "boolean":
		n.Op, n.Terms = query.Terms, w.terms("true", "false")
	case (f.Type == "long" || f.Type == "integer" || f.Type == "unsigned_long") && kind == 1:
		n.Op, n.Terms = query.Terms, w.terms("0", "1", "3", "-2", "7", "18446744073709551615")
	default:
		n.Op, n.From, n.To = query.Range, w.bound(f), w.bound(f)
	}
	if f.Path == "_id" && n.Op == query.Terms {
		n.Terms = w.terms("id-0", "id-1", "id-7", "id-12", "id-99", "x")
	}
	return n
}

func (w world) terms(of ...string) []string {
	var terms []string
	for _, text := range of {
		if w.IntN(3) == 0 {
			terms = append(terms, text)
		}
	}
	slices.Sort(terms)
	return terms
}

func (w world) bound(f query.Field) query.Bound {
	b := query.Bound{Set: w.IntN(3) > 0, Inclusive: w.IntN(2) == 0}
	if query.Dated(f.Type) {
		b.Time = time.Date(2024, 1, 1+w.IntN(40), w.IntN(5), 0, 0, w.IntN(3)*500_000_000, time.UTC)
		if f.Type == "date_nanos" {
			b.Time = time.Date(2024, 1, 1, 0, 0, 0, w.IntN(5)*500_001, time.UTC)
		}
		return b
	}
	b.Number = w.pick("-3", "0", "1", "2.5", "5", "30", "-100", "1e6")
	return b
}

func (w world) request() index.SearchRequest {
	req := index.SearchRequest{Total: w.IntN(2) == 0}
	if w.IntN(3) > 0 {
		req.Filter = w.filter("", 4)
	}
	for range w.IntN(4) {
		req.Facets = append(req.Facets, w.facet())
	}
	if w.IntN(2) == 0 {
		req.Hits = &index.HitsRequest{From: w.IntN(10) * w.IntN(2), Size: w.IntN(30), Sort: w.sorts()}
	}
	return req
}

func (w world) facet() index.Facet {
	all := scopes()
	path := w.pick("", "", "files", "files.parts", "donor.visits")
	f := index.Facet{Field: w.field(all[path])}
	if f.Field.Path == "_id" {
		f.Field = field("tags")
	}
	if path != "" && w.IntN(2) == 0 {
		f.Elements = w.filter(path, 2)
	}
	f.Missing, f.Cardinality, f.Stats = w.IntN(2) == 0, w.IntN(2)*100, w.IntN(2) == 0
	if f.Field.Path == "huge" { // exceeds the float64 with which the oracle sums up
		f.Stats = false
	}
	if w.IntN(3) > 0 {
		f.Buckets = &index.Buckets{Max: []int{1, 3, 500}[w.IntN(3)], TopHits: w.IntN(3) * w.IntN(2)}
		for range w.IntN(3) {
			f.Buckets.Filters = append(f.Buckets.Filters, w.filter("", 2))
		}
	}
	if f.Field.Type != "unsigned_long" && w.IntN(2) == 0 {
		f.Histogram = []float64{1, 2.5, 7}[w.IntN(3)]
		if query.Dated(f.Field.Type) {
			f.Histogram *= 86_400_000
		}
	}
	for range w.IntN(3) {
		var r index.NumberRange
		number := func() *float64 {
			v := float64(w.IntN(20) - 5)
			if query.Dated(f.Field.Type) {
				v = float64(time.Date(2024, 1, 1+w.IntN(40), 0, 0, 0, 0, time.UTC).UnixMilli())
			}
			return &v
		}
		if w.IntN(3) > 0 {
			r.From = number()
		}
		if w.IntN(3) > 0 {
			r.To = number()
		}
		f.Ranges = append(f.Ranges, r)
	}
	return f
}

func (w world) sorts() []index.Sort {
	var all []index.Sort
	for range w.IntN(4) {
		s := index.Sort{
			Field:      w.field(scopes()[w.pick("", "", "files", "files.parts", "donor.visits")]),
			Descending: w.IntN(2) == 0, MissingFirst: w.IntN(2) == 0,
			Mode: w.pick("", "min", "max", "sum", "avg", "median"),
		}
		calculated := s.Mode == "sum" || s.Mode == "avg" || s.Mode == "median"
		// Nanoseconds and the highest integers exceed the precision of the oracle's float64.
		if calculated && (!query.Keyed(s.Field.Type) || s.Field.Type == "date_nanos" || s.Field.Type == "unsigned_long") {
			s.Mode = ""
		}
		if s.Mode == "median" && s.Field.Row() != "" { // not supported by Elasticsearch
			s.Mode = "avg"
		}
		all = append(all, s)
	}
	return all
}
