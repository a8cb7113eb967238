package searchtest

import (
	"slices"
	"strings"
	"testing"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/cases"
)

// RunTable compares filters, facets and orders with expected results, determined by CONTRACT sections 4 and 5. open is called once. dialect is the
// engine's.
func RunTable(t *testing.T, open func(t *testing.T) index.Index, dialect Dialect) {
	t.Helper()
	w := &fixture{TB: t, x: open(t), reproduction: "the table"}
	tree, err := mapping.Parse([]byte(cases.Mapping))
	if err != nil {
		t.Fatal(err)
	}
	dialect.translate(tree)
	w.createAlias(tree)
	var changes []change
	for _, d := range cases.Documents() {
		changes = append(changes, change{d.ID, strings.NewReplacer("\n", "", "\t", "").Replace(d.Source)})
	}
	// The documents written first are replaced, which leaves deleted rows.
	w.write([][]change{{{"b", changes[0].source}, {"g", changes[0].source}, {"f", changes[1].source}}, changes[:3], append(changes[3:], change{id: "g"})})
	for _, c := range slices.Concat(cases.Flat(), cases.Nested()) {
		t.Run(c.Name, func(t *testing.T) { w.with(t).checkFilter(c.Filter, c.Want) })
	}
	for _, c := range slices.Concat(cases.Facets(), cases.Values()) {
		t.Run("facet: "+c.Name, func(t *testing.T) { w.with(t).checkFacet(c) })
	}
	for _, c := range cases.Orders() {
		t.Run("order: "+c.Name, func(t *testing.T) { w.with(t).checkOrder(c) })
	}
	t.Run("ids", func(t *testing.T) { w.with(t).checkIDs() })
	t.Run("an index without documents", func(t *testing.T) { w.with(t).checkEmpty() })
	t.Run("an index that is missing", func(t *testing.T) { w.with(t).checkMissingAlias() })
	t.Run("a context that has ended", func(t *testing.T) { w.with(t).checkCancelled() })
	t.Run("a stream ends with its callback", func(t *testing.T) { w.with(t).checkStreamError() })
	t.Run("a stream is of one moment", func(t *testing.T) { w.with(t).checkStreamSnapshot() })
	t.Run("choosing a bucket gives its count", func(t *testing.T) { w.with(t).checkBucketFilters() })
	t.Run("missing in a pivot", func(t *testing.T) { w.with(t).checkMissingInPivot() })
	t.Run("what no engine answers", func(t *testing.T) { w.with(t).checkInvalidRequests() })
}

// with returns the fixture for a sub-test.
func (w *fixture) with(t testing.TB) *fixture {
	out := *w
	out.TB = t
	return &out
}

// parse returns a valid filter.
func (w *fixture) parse(text string) sqon.Filter {
	w.Helper()
	f, err := sqon.Parse([]byte(text))
	if err == nil {
		err = f.Check(w.oracle.Fields)
	}
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return f
}

// search runs one request.
func (w *fixture) search(r index.SearchRequest) index.SearchResult {
	w.Helper()
	results, err := w.x.Search(w.Context(), w.alias, []index.SearchRequest{r})
	if err != nil || len(results) != 1 {
		w.Fatalf("Search returned %d results, %v", len(results), err)
	}
	return results[0]
}

// lower returns the tree of a filter.
func (w *fixture) lower(text string) *query.Node {
	w.Helper()
	n, err := query.Lower(w.Context(), w.parse(text), w.oracle.Fields, setsOf)
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return n
}

// checkFilter compares the matches of a filter, and those of the oracle.
func (w *fixture) checkFilter(filter, want string) {
	w.Helper()
	w.checkIndex(filter, want)
	if got := strings.Join(w.oracle.Find(w.parse(filter)), ""); got != want {
		w.Errorf("%s: the oracle finds %q, want %q", filter, got, want)
	}
}

// checkIndex is checkFilter without the oracle.
func (w *fixture) checkIndex(filter, want string) {
	w.Helper()
	r := w.search(index.SearchRequest{
		Filter: w.lower(filter), Total: true, Hits: &index.HitsRequest{Size: 100, Sort: []index.Sort{w.sort("uid")}},
	})
	if got := letters(r.Hits); got != want || r.Total != int64(len(want)) {
		w.Errorf("%s finds %q, %d in all, want %q", filter, got, r.Total, want)
	}
}

func letters(hits []index.Hit) string {
	var ids strings.Builder
	for _, h := range hits {
		ids.WriteString(h.ID)
	}
	return ids.String()
}

func (w *fixture) sort(name string) index.Sort {
	w.Helper()
	f, ok := w.oracle.Fields.Lookup(name)
	if !ok {
		w.Fatalf("there is no field %s", name)
	}
	return index.Sort{Field: f}
}
