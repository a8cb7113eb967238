package elastic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// Constructors of filters.

func field(path, kind string, nested ...string) query.Field {
	return query.Field{Path: path, Type: kind, Nested: nested}
}

func terms(f query.Field, values ...string) *query.Node {
	return &query.Node{Op: query.Terms, Field: f, Terms: values}
}

func exists(f query.Field) *query.Node { return &query.Node{Op: query.Exists, Field: f} }

func patterns(f query.Field, fold bool, all ...sqon.Pattern) *query.Node {
	return &query.Node{Op: query.Patterns, Field: f, Patterns: all, Fold: fold}
}

func join(op query.Op, nodes ...*query.Node) *query.Node {
	return &query.Node{Op: op, Children: nodes}
}

func some(path string, n *query.Node) *query.Node {
	return &query.Node{Op: query.Some, Path: path, Children: []*query.Node{n}}
}

func within(f query.Field, from, to query.Bound) *query.Node {
	return &query.Node{Op: query.Range, Field: f, From: from, To: to}
}

func number(text string, inclusive bool) query.Bound {
	return query.Bound{Set: true, Inclusive: inclusive, Number: text}
}

func instant(text string, inclusive bool) query.Bound {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return query.Bound{Set: true, Inclusive: inclusive, Time: at}
}

// asking returns an engine and a function that returns the last request to the cluster. The cluster finds no documents.
func asking(t *testing.T) (*elastic.Index, func() string) {
	t.Helper()
	var last string
	x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		address, err := url.PathUnescape(r.URL.RequestURI())
		if err != nil {
			t.Error(err)
		}
		last = r.Method + " " + address + "\n" + string(body)
		const one = `{"_shards":{"failed":0},"hits":{"total":{"value":0},"hits":[]},"aggregations":{}}`
		if !strings.HasSuffix(r.URL.Path, "/_msearch") {
			_, _ = w.Write([]byte(one))
			return
		}
		searches := strings.Count(string(body), "\n") / 2
		_, _ = fmt.Fprintf(w, `{"responses":[%s]}`, strings.TrimSuffix(strings.Repeat(one+",", searches), ","))
	}))
	return x, func() string { return last }
}

func filterCases() []struct {
	name   string
	filter *query.Node
} {
	k, n, d := field("k", "keyword"), field("n", "long"), field("t", "date")
	a, b := field("a.k", "keyword", "a"), field("a.b.k", "keyword", "a", "a.b")
	id := field("_id", "keyword")
	return []struct {
		name   string
		filter *query.Node
	}{
		{"all documents", nil},
		{"everything", &query.Node{Op: query.Everything}},
		{"nothing", &query.Node{Op: query.Nothing}},
		{"one term", terms(k, `a"b\`)},
		{"terms", terms(k, "", "a", "é")},
		{"no terms", terms(k)},
		{"ids", terms(id, "1", "2")},
		{"an id exists", exists(id)},
		{"numbers", terms(n, "-7", "9223372036854775807")},
		{"words of a text", terms(field("x", "text"), "red")},
		{"a type without terms", terms(field("g", "geo_point"), "1,1")},
		{"a value exists", exists(k)},
		{"no value", join(query.Not, exists(k))},
		{"and", join(query.And, terms(k, "a"), join(query.And, terms(n, "1"), exists(d)), join(query.Not, terms(k, "b")))},
		{"or", join(query.Or, terms(k, "a"), join(query.Or, terms(n, "1"), exists(d)))},
		{"or of one", join(query.Or, terms(k, "a"))},
		{"and of one", join(query.And, terms(k, "a"))},
		{"not or", join(query.Not, join(query.Or, terms(k, "a"), terms(k, "b")))},
		{"not and", join(query.Not, join(query.And, terms(k, "a"), terms(n, "1")))},
		{"not not", join(query.Not, join(query.Not, terms(k, "a")))},
		{"some element", some("a", terms(a, "a"))},
		{"some element two levels below", some("a.b", terms(b, "a"))},
		{"some element that holds none", some("a", join(query.Not, some("a.b", terms(b, "a"))))},
		{"pattern", patterns(k, false, `a*\?b`)},
		{"patterns, whatever the case", patterns(k, true, `*a*`, `b?`)},
		{"patterns of words", patterns(field("x", "text"), true, `re*`)},
		{"patterns of a flattened field", patterns(field("info", "flattened"), true, `re*`)},
		{"patterns of numbers", patterns(n, true, `1*`)},
		{"patterns of a constant", patterns(query.Field{Path: "c", Type: "constant_keyword", Constant: "Red"}, true, `r?d`)},
		{"values of a constant", terms(query.Field{Path: "c", Type: "constant_keyword", Constant: "Red"}, "R*", "Red", "*")},
		{"values of another constant", terms(query.Field{Path: "c", Type: "constant_keyword", Constant: "Red"}, "R*", "*")},
		{"patterns of another constant", patterns(query.Field{Path: "c", Type: "constant_keyword", Constant: "Red"}, false, `r?d`)},
		{"patterns of ids", patterns(id, true, `1*`)},
		{"integers", within(n, number("1.5", true), number("7", false))},
		{"integers beyond the type", within(field("i", "integer"), number("-1e30", true), number("1e30", true))},
		{"no integer", within(field("i", "integer"), number("1e30", true), query.Bound{})},
		{"fractions", within(field("f", "double"), number("0.10", false), number("1e3", true))},
		{"fractions of a float", within(field("f", "float"), number("0.1", true), query.Bound{})},
		{"fractions beyond the type", within(field("f", "float"), number("-1e300", true), number("2", true))},
		{"no fraction", within(field("f", "half_float"), query.Bound{}, number("-70000", true))},
		{"dates", within(d, instant("2024-03-05T10:20:30.0005Z", true), instant("2024-03-06T00:00:00Z", false))},
		{"dates of another era", within(d, instant("0001-01-01T00:00:00Z", true), query.Bound{})},
		{"instants", within(field("t", "date_nanos"), instant("2024-03-05T10:20:30.000000001Z", false), instant("2024-03-06T00:00:00Z", true))},
		{"instants beyond the type", within(field("t", "date_nanos"), instant("1800-03-05T00:00:00Z", false), instant("2400-03-06T00:00:00Z", true))},
		{"no instant", within(field("t", "date_nanos"), instant("2400-03-06T00:00:00Z", true), query.Bound{})},
		{"no instant before 1970", within(field("t", "date_nanos"), query.Bound{}, instant("1960-03-06T00:00:00Z", true))},
		{"a range of texts", within(k, number("1", true), query.Bound{})},
	}
}

// TestFilters holds the queries of filters. The differential suite checks their results on a real cluster.
func TestFilters(t *testing.T) {
	x, asked := asking(t)
	var all strings.Builder
	for _, tt := range filterCases() {
		if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Filter: tt.filter, Total: true}}); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		body := strings.TrimPrefix(asked(), "POST /a/_search?allow_partial_search_results=false&request_cache=true\n")
		body = strings.TrimPrefix(body, `{"size":0,"track_total_hits":true,"query":`)
		fmt.Fprintf(&all, "%s: %s\n", tt.name, strings.TrimSuffix(body, "}"))
	}
	golden(t, "filters.golden", []byte(all.String()))
}

// TestManyTerms: one query takes 65,536 terms.
func TestManyTerms(t *testing.T) {
	x, asked := asking(t)
	many := make([]string, 2*65_536+1)
	for i := range many {
		many[i] = fmt.Sprintf("%06d", i)
	}
	if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Filter: terms(field("k", "keyword"), many...), Total: true}}); err != nil {
		t.Fatal(err)
	}
	body := asked()
	if got := strings.Count(body, `{"terms":{"k":["`); got != 2 {
		t.Errorf("%d queries of many terms, want 2", got)
	}
	if !strings.Contains(body, `{"bool":{"should":[{"terms":{"k":["000000",`) || !strings.HasSuffix(body, `{"term":{"k":"131072"}}]}}}`) {
		t.Errorf("asked %s … %s", body[:200], body[len(body)-200:])
	}
}

// deep returns a filter with that many nested clauses, none of which can be flattened.
func deep(levels int, leaf *query.Node) *query.Node {
	k := field("k", "keyword")
	for i := range levels {
		op := query.And
		if i%2 == 0 {
			op = query.Or
		}
		leaf = join(op, leaf, terms(k, fmt.Sprint(i)))
	}
	return leaf
}

// TestDeepFilters: the cluster accepts 30 levels of nested queries; deeper ones are wrapped.
func TestDeepFilters(t *testing.T) {
	x, asked := asking(t)
	for _, tt := range []struct{ levels, wrapped int }{{1, 0}, {17, 0}, {18, 1}, {200, 1}} {
		req := index.SearchRequest{Filter: deep(tt.levels, terms(field("k", "keyword"), "x")), Total: true}
		if _, err := x.Search(t.Context(), "a", []index.SearchRequest{req}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(asked(), `{"wrapper":{"query":"`); got != tt.wrapped {
			t.Errorf("%d levels: %d wrappers, want %d", tt.levels, got, tt.wrapped)
		}
	}
}

// TestAddressPatterns: the cluster has no wildcard query for addresses, so patterns are matched with the addresses in the index.
func TestAddressPatterns(t *testing.T) {
	ip := field("a.ip", "ip", "a")
	filter := some("a", patterns(ip, true, "10.*", "*::1"))
	page := func(keys ...string) answer {
		var buckets strings.Builder
		for _, key := range keys {
			buckets.WriteString(`{"key":{"v":"` + key + `"},"doc_count":1,"d":{"doc_count":1}},`)
		}
		after := ""
		if len(keys) > 0 {
			after = `"after_key":{"v":"` + keys[len(keys)-1] + `"},`
		}
		return answer{200, `{"pit_id":"P2","_shards":{"failed":0},"aggregations":{"a0":{"doc_count":3,"p":{` + after +
			`"buckets":[` + strings.TrimSuffix(buckets.String(), ",") + `]}}}}`}
	}
	none := answer{200, `{"_shards":{"failed":0},"hits":{"total":{"value":3},"hits":[]}}`}

	x, s := play(t, answer{200, point}, page("9.0.0.1", "10.0.0.1"), page("2001:db8::1"), page(), answer{200, `{}`}, none)
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Filter: filter, Total: true}})
	if err != nil || got[0].Total != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	golden(t, "addresses.golden", []byte(strings.Join(s.asked, "\n")+"\n"))

	// Matches over the limit are rejected before a search with them is sent.
	keys := make([]string, 10_001)
	for i := range keys {
		keys[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	x, _ = play(t, answer{200, point}, page(keys...), page(), answer{200, `{}`})
	_, err = x.Search(t.Context(), "a", []index.SearchRequest{{Filter: filter, Total: true}})
	wantError(t, err, core.CodeInvalid, "more than 10000 values of the field a.ip match a pattern; use a more specific one")
}
