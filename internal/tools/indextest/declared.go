package indextest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream/declared"
)

// orderCases are records whose first value does not show the type of a field, with the answers that are right in any order of arrival.
//
//go:embed testdata/order-of-arrival.json
var orderCases []byte

// orderCase is the content of orderCases.
type orderCase struct {
	Schema      json.RawMessage   `json:"schema"`
	Experiments []json.RawMessage `json:"experiments"`
	Right       map[string]any    `json:"right in any order"`
}

// orders returns all orders of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, rest := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(rest), at, n-1))
		}
	}
	return all
}

// testOrderOfArrival writes the declared records in every order, each below a name of its own: the answers are the same. Each order adds
// its fields by single writes.
func testOrderOfArrival(s *suite) {
	var c orderCase
	if err := json.Unmarshal(orderCases, &c); err != nil {
		s.Fatal(err)
	}
	s.ensure()
	var b mapping.TypesBuilder
	declared.Schema(&b, c.Schema, "a:1")
	one, all := b.Types(), (*mapping.Types)(nil)
	for i := range orders(len(c.Experiments)) {
		all = all.Merge(one.Below(fmt.Sprint("o", i)))
	}
	s.x.Declare(s.alias, all)
	for i, order := range orders(len(c.Experiments)) {
		for _, record := range order {
			s.indexed(put(fmt.Sprint(i, "-", record), 1, fmt.Sprintf(`{"o%d":{"experiment":%s}}`, i, c.Experiments[record])))
		}
	}
	s.refresh()
	for i, order := range orders(len(c.Experiments)) {
		field := func(name string, t mapping.Type) query.Field {
			return query.Field{Path: fmt.Sprintf("o%d.experiment.%s", i, name), Type: string(t)}
		}
		after := query.Bound{Set: true, Time: time.Date(2020, 6, 1, 23, 59, 59, 999_000_000, time.UTC)}
		stats := s.stats(field("ratio", mapping.Double))
		got := map[string]any{
			"gt experiment.ratio 2":              s.found(&query.Node{Op: query.Range, Field: field("ratio", mapping.Double), From: query.Bound{Set: true, Number: "2"}}),
			"max of ratio":                       stats.Max,
			"sum of ratio":                       stats.Sum,
			"in experiment.note [unknown]":       s.found(query.Exactly(field("note", mapping.Keyword), []string{"unknown"})),
			"in experiment.note [2020-01-01]":    s.found(query.Exactly(field("note", mapping.Keyword), []string{"2020-01-01"})),
			"gt experiment.day 2020-06-01":       s.found(&query.Node{Op: query.Range, Field: field("day", mapping.Date), From: after}),
			"in experiment.n [9007199254740993]": s.found(query.Exactly(field("n", mapping.Long), []string{"9007199254740993"})),
			"dead letters":                       0.0, // every write was indexed
		}
		if d := cmp.Diff(c.Right, got); d != "" {
			s.Errorf("order %v (-want +got):\n%s", order, d)
		}
	}
}

// testUndeclared writes undeclared values in every order: what is found does not depend on it.
func testUndeclared(s *suite) {
	s.ensure()
	write := func(name string, order []int, values ...string) {
		for _, at := range order {
			s.indexed(put(fmt.Sprint(name, at), 1, fmt.Sprintf(`{"x":{%q:%s}}`, name, values[at])))
		}
	}
	write("n0", []int{0, 1}, `1`, `2.5`)
	write("n1", []int{1, 0}, `1`, `2.5`)
	write("t0", []int{0, 1}, `"2020-01-01"`, `"unknown"`)
	write("t1", []int{1, 0}, `"2020-01-01"`, `"unknown"`)
	write("l", []int{0}, `[1,[2.5,3]]`)
	s.refresh()
	for _, name := range []string{"x.n0", "x.n1"} {
		field := query.Field{Path: name, Type: string(mapping.Double)}
		above := s.found(&query.Node{Op: query.Range, Field: field, From: query.Bound{Set: true, Number: "2"}})
		if stats := s.stats(field); above != 1 || stats.Max != 2.5 {
			s.Errorf("%s: %v above 2, %+v", name, above, stats)
		}
	}
	for _, name := range []string{"x.t0", "x.t1"} {
		for _, value := range []string{"2020-01-01", "unknown"} {
			if n := s.found(query.Exactly(query.Field{Path: name, Type: string(mapping.Keyword)}, []string{value})); n != 1 {
				s.Errorf("%s: %v have %s", name, n, value)
			}
		}
	}
	s.typed(map[string]mapping.Type{"x.n0": mapping.Double, "x.t0": mapping.Keyword, "x.l": mapping.Double})
}

// testInexact: a whole number beyond 2^53 is rejected, with a hint, where nothing declares the field, whether it is the first value or not.
func testInexact(s *suite) {
	s.ensure()
	var b mapping.TypesBuilder
	b.Declare("x.long", mapping.JSONInteger, "a:1")
	b.Declare("x.double", mapping.JSONNumber, "a:1")
	s.x.Declare(s.alias, b.Types())
	const big = "9007199254740993"
	s.indexed(put("a", 1, `{"x":{"n":9007199254740992,"long":1,"double":1,"text":"`+big+`"},"files":[{"fileSize":`+big+`}]}`))
	results := s.expect(outcomes(core.OutcomeRejected, core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeIndexed, core.OutcomeRejected, core.OutcomeIndexed, core.OutcomeRemoved),
		put("b", 1, `{"x":{"n":`+big+`}}`), put("c", 1, `{"x":{"long":`+big+`,"double":`+big+`}}`), put("d", 1, `{"x":{"fresh":[1,-`+big+`]}}`),
		put("e", 1, `{"x":{"n":-9007199254740992}}`), put("f", 1, `{"x":{"n":18446744073709551616}}`), put("g", 1, `{"x":{"n":9007199254740993.5,"text":"`+big+`"}}`),
		remove("none", 1))
	for _, i := range []int{0, 2, 4} {
		if r := results[i]; r.Type != core.TypeParsing || !strings.Contains(r.Reason, "is a whole number beyond 2^53") ||
			!strings.Contains(r.Hint, "declare it as integer in the schema, or map it as long in the mapping file") {
			s.Errorf("result %d: %+v", i, r)
		}
	}
	s.typed(map[string]mapping.Type{"x.n": mapping.Double, "x.fresh": "", "x.long": mapping.Long, "x.double": mapping.Double})
	s.counts(4, core.IndexScope{})
}

// testEarlierRule: an index of an earlier release keeps its rule, by which the first value decides, and the types that it has.
func testEarlierRule(s *suite) {
	s.ensureWith(earlierSpec(s.alias))
	s.indexed(put("a", 1, `{"n":1,"t":"2020-01-01"}`))
	s.ensure()
	var b mapping.TypesBuilder
	b.Declare("n", mapping.JSONNumber, "a:1")
	b.Declare("t", mapping.JSONString, "a:1")
	b.Declare("ratio", mapping.JSONNumber, "a:1")
	s.x.Declare(s.alias, b.Types())
	s.indexed(put("b", 1, `{"n":9007199254740993,"t":"2021-01-01","later":9007199254740993,"day":"2020-01-01","ratio":1}`))
	s.expect(outcomes(core.OutcomeRejected), put("c", 1, `{"t":"unknown"}`))
	s.typed(map[string]mapping.Type{
		"n": mapping.Long, "t": mapping.Date, "later": mapping.Long, "day": mapping.Date, "ratio": mapping.Double, "analysisId": mapping.Keyword,
	})
}

// earlierSpec returns a Spec whose index has the rule of earlier releases.
func earlierSpec(alias string) index.Spec {
	return index.Spec{Alias: alias, Mapping: json.RawMessage(`{"_meta":{"tutti":{"types":""}},"properties":{}}`), Known: mapping.Song()}
}

// testDeclaredTwice: of types that are declared while documents are written, each write uses one or the other, and all are indexed.
func testDeclaredTwice(s *suite) {
	s.ensure()
	for _, as := range []mapping.JSONType{mapping.JSONInteger, mapping.JSONNumber} {
		var b mapping.TypesBuilder
		b.Declare("x.first", as, "a:1")
		b.Declare("x."+string(as), as, "a:1")
		s.x.Declare(s.alias, b.Types())
		s.indexed(put(string(as), 1, `{"x":{"first":1,"`+string(as)+`":1}}`))
	}
	s.x.Declare(s.alias, nil)
	s.indexed(put("c", 1, `{"x":{"first":1,"c":1}}`))
	s.typed(map[string]mapping.Type{"x.first": mapping.Long, "x.integer": mapping.Long, "x.number": mapping.Double, "x.c": mapping.Double})
}

// found returns the number of documents that match a filter, as JSON has numbers.
func (s *suite) found(filter *query.Node) float64 {
	s.Helper()
	return float64(s.search(index.SearchRequest{Filter: filter, Total: true}).Total)
}

// stats returns the statistics of a field.
func (s *suite) stats(field query.Field) index.Stats {
	s.Helper()
	return s.search(index.SearchRequest{Facets: []index.Facet{{Field: field, Stats: true}}}).Facets[0].Stats
}

func (s *suite) search(ask index.SearchRequest) index.SearchResult {
	s.Helper()
	results, err := s.x.Search(s.Context(), s.alias, []index.SearchRequest{ask})
	if err != nil || len(results) != 1 {
		s.Fatalf("Search: %d results, %v", len(results), err)
	}
	return results[0]
}
