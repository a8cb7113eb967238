package elastic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// found wraps the parts of an answer that differ.
func found(parts string) answer {
	return answer{200, `{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},` + parts + `}`}
}

func TestHits(t *testing.T) {
	k := field("k", "keyword")
	x, _ := play(t, found(`"hits":{"total":{"value":7,"relation":"eq"},"max_score":null,"hits":[`+
		`{"_index":"a-1","_id":"a\"\u00e9","_score":null,"_source": {"n":1.0,"e":1e3,"s":"}\"\\" } ,"sort":["x\"]",9223372036854775807]},`+
		`{"_id":"b","sort":[null,"Infinity"]}]}`))
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Total: true, Hits: &index.HitsRequest{
		Size: 2, Sort: []index.Sort{{Field: k}, {Field: field("n", "long")}},
	}}})
	want := []index.SearchResult{{Total: 7, Hits: []index.Hit{
		{ID: `a"é`, Source: []byte(`{"n":1.0,"e":1e3,"s":"}\"\\" }`), Sort: []json.RawMessage{[]byte(`"x\"]"`), []byte(`null`)}},
		{ID: "b", Source: []byte(`{}`), Sort: []json.RawMessage{[]byte(`null`), []byte(`"Infinity"`)}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}

	// Of ids alone the cluster is asked to leave out what is empty.
	for body, want := range map[string][]index.Hit{`"hits":{"hits":[{"_id":"b","sort":[4]}]}`: {{ID: "b"}}, `"n":0`: nil} {
		x, _ = play(t, found(body))
		got, err = x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 2, Source: index.Source{None: true}}}})
		if diff := cmp.Diff([]index.SearchResult{{Hits: want}}, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// TestHitsOutliveTheirReply: the buffer of a reply goes back to the pool and has the next one.
func TestHitsOutliveTheirReply(t *testing.T) {
	page := func(c string) answer {
		return found(`"hits":{"hits":[{"_id":"` + c + `","_source":{"v":"` + strings.Repeat(c, 200) + `"},"sort":["` + c + `"]}]}`)
	}
	x, _ := play(t, page("a"), page("b"))
	req := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field("k", "keyword")}}}}}
	first, err := x.Search(t.Context(), "a", req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), "a", req); err != nil {
		t.Fatal(err)
	}
	if hit := first[0].Hits[0]; string(hit.Source) != `{"v":"`+strings.Repeat("a", 200)+`"}` || string(hit.Sort[0]) != `"a"` {
		t.Errorf("after the second answer the first one is %s %s", hit.Source, hit.Sort)
	}
}

func TestFacetAnswers(t *testing.T) {
	bucket := func(max int) *index.Buckets { return &index.Buckets{Max: max} }
	tests := []struct {
		name  string
		facet index.Facet
		aggs  string
		want  index.FacetResult
	}{
		{
			"documents by value",
			index.Facet{Field: field("k", "keyword"), Buckets: &index.Buckets{Max: 5, Filters: make([]*query.Node, 2)}},
			`"a0t":{"sum_other_doc_count":0,"buckets":[{"key":"x\"","doc_count":3,"f0":{"doc_count":2},"f1":{"doc_count":0}}]}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: `x"`, Count: 3, Filters: []int64{2, 0}}}},
		},
		{
			"documents by value of elements, with the first of them",
			index.Facet{Field: field("a.n", "long", "a"), Buckets: &index.Buckets{Max: 5, TopHits: 1, Filters: make([]*query.Node, 1)}},
			`"a0":{"doc_count":9,"e":{"doc_count":8,"t":{"buckets":[{"key":-7,"doc_count":9,"d":{"doc_count":3},"x":{"doc_count":3,"f0":{"doc_count":1},` +
				`"h":{"hits":{"total":{"value":3,"relation":"eq"},"max_score":null,"hits":[{"_index":"a-1","_id":"i","_score":null,"_source":{"x":1},"sort":[3]}]}}}}]}}}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: "-7", Count: 3, Filters: []int64{1}, TopHits: []index.Hit{{ID: "i", Source: []byte(`{"x":1}`)}}}}},
		},
		{
			"fractions",
			index.Facet{Field: field("f", "double"), Buckets: bucket(5)},
			`"a0t":{"buckets":[{"key":1.0E10,"doc_count":2},{"key":0.5,"doc_count":1},{"key":1.0E-7,"doc_count":1},{"key":-0.0,"doc_count":1}]}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: "10000000000", Count: 2}, {Key: "0.5", Count: 1}, {Key: "1e-7", Count: 1}, {Key: "0", Count: 1}}},
		},
		{
			"booleans",
			index.Facet{Field: field("b", "boolean"), Buckets: bucket(5)},
			`"a0t":{"buckets":[{"key":1,"key_as_string":"true","doc_count":2},{"key":0,"key_as_string":"false","doc_count":1}]}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: "true", Count: 2}, {Key: "false", Count: 1}}},
		},
		{
			"dates",
			index.Facet{Field: field("t", "date"), Buckets: bucket(5)},
			`"a0t":{"buckets":[{"key":-5,"key_as_string":"1969-12-31T23:59:59.995Z","doc_count":2}]}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: "-5", Count: 2}}},
		},
		{
			"addresses by their text",
			index.Facet{Field: field("ip", "ip"), Buckets: bucket(2)},
			`"a0t":{"sum_other_doc_count":0,"buckets":[{"key":"9.0.0.1","doc_count":2},{"key":"10.0.0.1","doc_count":2},{"key":"::1","doc_count":2}]}`,
			index.FacetResult{Buckets: []index.Bucket{{Key: "10.0.0.1", Count: 2}, {Key: "9.0.0.1", Count: 2}}},
		},
		{
			"numbers about documents",
			index.Facet{Field: field("n", "long"), Missing: true, Cardinality: 5, Stats: true},
			`"a0m":{"doc_count":4},"a0c":{"value":3},"a0s":{"count":4,"min":1.0,"max":5.0,"avg":2.5,"sum":1.0E1}`,
			index.FacetResult{Missing: 4, Cardinality: 3, Stats: index.Stats{Min: 1, Max: 5, Avg: 2.5, Sum: 10, Count: 4}},
		},
		{
			"statistics of nothing",
			index.Facet{Field: field("a.n", "long", "a"), Stats: true},
			`"a0":{"doc_count":0,"s":{"count":0,"min":null,"max":null,"avg":null,"sum":0.0}}`,
			index.FacetResult{},
		},
		{
			"ranges in the order of the question",
			index.Facet{Field: field("a.n", "long", "a"), Ranges: make([]index.NumberRange, 3)},
			`"a0":{"r":{"buckets":[{"key":"2","to":2.0,"doc_count":9,"d":{"doc_count":1}},{"key":"0","from":1.0,"doc_count":9,"d":{"doc_count":2}}]}}`,
			index.FacetResult{Ranges: []int64{2, 0, 1}},
		},
		{
			"intervals, those between included",
			index.Facet{Field: field("f", "double"), Histogram: 0.1},
			`"a0h":{"buckets":[{"key":-0.1,"doc_count":1},{"key":0.30000000000000004,"doc_count":2}]}`,
			index.FacetResult{Histogram: []index.Interval{{Key: -0.1, Count: 1}, {Key: 0}, {Key: 0.1}, {Key: 0.2}, {Key: 0.30000000000000004, Count: 2}}},
		},
		{"no interval", index.Facet{Field: field("f", "double"), Histogram: 0.1}, `"a0h":{"buckets":[]}`, index.FacetResult{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answers := []answer{found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{` + tt.aggs + `}`)}
			if tt.facet.Buckets != nil && tt.facet.Buckets.TopHits > 0 {
				answers = append([]answer{found(`"hits":{"hits":[]}`)}, answers...)
			}
			x, _ := play(t, answers...)
			got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{tt.facet}}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got[0].Facets[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEqualFacets: what is asked twice is answered twice, though the cluster is asked once.
func TestEqualFacets(t *testing.T) {
	f := index.Facet{Field: field("k", "keyword"), Buckets: &index.Buckets{Max: 5}}
	x, _ := play(t, found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0t":{"buckets":[{"key":"x","doc_count":3}]}}`))
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{f, f}}, {Total: true, Facets: []index.Facet{f}}})
	one := index.FacetResult{Buckets: []index.Bucket{{Key: "x", Count: 3}}}
	want := []index.SearchResult{{Facets: []index.FacetResult{one, one}}, {Total: 9, Facets: []index.FacetResult{one}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestAlmostEqualFacets: of addresses the cluster is asked for the same, however many are wanted.
func TestAlmostEqualFacets(t *testing.T) {
	top := func(most int) index.Facet {
		return index.Facet{Field: field("ip", "ip"), Buckets: &index.Buckets{Max: most}}
	}
	const two = `{"buckets":[{"key":"9.0.0.1","doc_count":3},{"key":"10.0.0.1","doc_count":2}]}`
	x, _ := play(t, found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0t":`+two+`,"a1t":`+two+`}`))
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{top(1), top(2)}}})
	if err != nil || len(got[0].Facets[0].Buckets) != 1 || len(got[0].Facets[1].Buckets) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTooManyIntervals(t *testing.T) {
	const message = "a histogram of the field \"f\" with an interval of 0.5 would have more than 10000 intervals"
	for _, keys := range []string{
		`{"key":0.0,"doc_count":1},{"key":5000.0,"doc_count":1}`, `{"key":-1.0E300,"doc_count":1},{"key":1.0E300,"doc_count":1}`,
		`{"key":0.5,"doc_count":1},{"key":"Infinity","doc_count":1}`,
	} {
		x, _ := play(t, found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0h":{"buckets":[`+keys+`]}}`))
		_, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{Field: field("f", "double"), Histogram: 0.5}}}})
		wantError(t, err, core.CodeInvalid, message)
	}
	x, _ := play(t, found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0h":{"buckets":[{"key":0.0,"doc_count":1},{"key":4999.5,"doc_count":1}]}}`))
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{Field: field("f", "double"), Histogram: 0.5}}}})
	if err != nil || len(got[0].Facets[0].Histogram) != 10_000 {
		t.Errorf("got %d intervals, %v", len(got[0].Facets[0].Histogram), err)
	}
}

const manyBuckets = `{"error":{"root_cause":[],"type":"search_phase_execution_exception","reason":"","phase":"fetch","grouped":true,` +
	`"failed_shards":[],"caused_by":{"type":"too_many_buckets_exception","reason":"Trying to create too many buckets.","max_buckets":65536}},"status":400}`

// TestTooManyBuckets: where one answer has no room for all buckets, each facet is asked by itself, and those with more values than
// that page by page.
func TestTooManyBuckets(t *testing.T) {
	k, n := field("k", "keyword"), field("a.n", "long", "a")
	facets := []index.Facet{
		{Field: k, Missing: true, Buckets: &index.Buckets{Max: 2}},
		{Field: n, Elements: exists(n), Stats: true, Histogram: 5, Buckets: &index.Buckets{Max: index.MaxBuckets}},
	}
	x, s := play(t, answer{400, manyBuckets},
		answer{200, `{"responses":[` +
			found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0m":{"doc_count":4},"a1":{"e":{"s":{"count":1,"min":5.0,"max":5.0,"avg":5.0,"sum":5.0}}}}`).body + "," +
			found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0t":{"sum_other_doc_count":9,"buckets":[{"key":"x","doc_count":3},{"key":"y","doc_count":3}]}}`).body + "," +
			manyBuckets + "," +
			found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0":{"e":{"h":{"buckets":[{"key":5.0,"doc_count":1,"d":{"doc_count":1}}]}}}}`).body + `]}`},
		answer{200, point},
		answer{200, `{"pit_id":"P","_shards":{"failed":0},"aggregations":{"a0":{"e":{"p":{"after_key":{"v":10},"buckets":[` +
			`{"key":{"v":9},"doc_count":5,"d":{"doc_count":1}},{"key":{"v":10},"doc_count":2,"d":{"doc_count":2}}]}}}}}`},
		answer{200, `{"pit_id":"P","_shards":{"failed":0},"aggregations":{"a0":{"e":{"p":{"buckets":[{"key":{"v":1000},"doc_count":2,"d":{"doc_count":1}}]}}}}}`},
		answer{200, `{}`},
	)
	got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Total: true, Facets: facets}})
	want := []index.SearchResult{{Total: 9, Facets: []index.FacetResult{
		{Missing: 4, Buckets: []index.Bucket{{Key: "x", Count: 3}, {Key: "y", Count: 3}}},
		{
			Stats: index.Stats{Min: 5, Max: 5, Avg: 5, Sum: 5, Count: 1}, Histogram: []index.Interval{{Key: 5, Count: 1}},
			Buckets: []index.Bucket{{Key: "10", Count: 2}, {Key: "9", Count: 1}, {Key: "1000", Count: 1}},
		},
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	golden(t, "apart.golden", []byte(strings.Join(s.asked, "\n")+"\n"))

	x, _ = play(t, answer{400, manyBuckets}, answer{200, `{"responses":[` + found(`"hits":{"total":{"value":9},"hits":[]}`).body + `,` + manyBuckets + `]}`})
	_, err = x.Search(t.Context(), "a", []index.SearchRequest{{Facets: []index.Facet{{Field: field("n", "long"), Histogram: 1}}}})
	wantError(t, err, core.CodeInvalid, "a histogram of the field \"n\" with an interval of 1 would have more than 10000 intervals")
}

// TestPagesOfEveryDocument: a page of the values of all documents is no composite aggregation over match_all, which takes the cluster
// up to 80 times as long.
func TestPagesOfEveryDocument(t *testing.T) {
	for _, filter := range []*query.Node{nil, terms(field("n", "long"), "5")} {
		x, s := play(t, found(`"hits":{"total":{"value":9},"hits":[]},"aggregations":{"a0t":{"sum_other_doc_count":9,"buckets":[{"key":"x","doc_count":3}]}}`),
			answer{200, point}, answer{200, `{"pit_id":"P","_shards":{"failed":0},"aggregations":{"a0p":{"buckets":[{"key":{"v":"x"},"doc_count":3}]}}}`}, answer{200, `{}`})
		got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Filter: filter, Facets: []index.Facet{{Field: field("k", "keyword"), Buckets: &index.Buckets{Max: index.MaxBuckets}}}}})
		if err != nil || len(got[0].Facets[0].Buckets) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		_, id, each := strings.Cut(s.asked[2], `"query":{"bool":{"must_not":{"term":{"_id":"`)
		if id, _, _ = strings.Cut(id, `"`); each != (filter == nil) || each && len(id) <= core.MaxIDBytes {
			t.Errorf("asked %s", s.asked[2])
		}
	}
}

// TestSearchFaults: an answer that is not whole is none, whoever says so.
func TestSearchFaults(t *testing.T) {
	const whole = `"hits":{"total":{"value":0},"hits":[]}`
	phase := func(status int, kind, reason string) answer {
		return answer{status, fmt.Sprintf(`{"error":{"root_cause":[{"type":%q,"reason":%q}],"type":"search_phase_execution_exception",`+
			`"reason":"all shards failed","failed_shards":[{"shard":0,"reason":{"type":%q,"reason":%q}}]},"status":%d}`, kind, reason, kind, reason, status)}
	}
	const other = "the index returned an unexpected response"
	const part = "the index returned incomplete search results"
	tests := []struct {
		name    string
		answer  answer
		code    core.Code
		message string
	}{
		{"a shard failed", answer{200, `{"timed_out":false,"_shards":{"failed":1},` + whole + `}`}, core.CodeUnavailable, part},
		{"timed out", answer{200, `{"timed_out":true,"_shards":{"failed":0},` + whole + `}`}, core.CodeUnavailable, part},
		{"no shards", answer{200, `{` + whole + `}`}, core.CodeUnavailable, other},
		{"no hits", answer{200, `{"_shards":{"failed":0}}`}, core.CodeUnavailable, other},
		{"no total", answer{200, `{"_shards":{"failed":0},"hits":{"hits":[]}}`}, core.CodeUnavailable, other},
		{"no JSON", answer{200, `<html>`}, core.CodeUnavailable, other},
		{"cut within", answer{200, `{"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[{"_id":"a"`}, core.CodeUnavailable, other},
		{"cut", answer{}, core.CodeUnavailable, "the response of the index is incomplete"},
		{"missing", refused(404, "index_not_found_exception", "no such index [a]"), core.CodeIndexBlocked, "the index is missing"},
		{"closed", refused(400, "index_closed_exception", "closed"), core.CodeIndexBlocked, "the index is closed"},
		{"blocked", refused(403, "cluster_block_exception", "blocked by"), core.CodeIndexBlocked, "the index is blocked"},
		{"forbidden", refused(403, "security_exception", "action [indices:data/read/search] is unauthorized"), core.CodeIndexBlocked, "the user of the index lacks a privilege"},
		{"no shard is there", phase(503, "no_shard_available_action_exception", ""), core.CodeUnavailable, part},
		{"all shards failed", refused(503, "search_phase_execution_exception", "all shards failed"), core.CodeUnavailable, part},
		{"busy", phase(429, "es_rejected_execution_exception", "queue"), core.CodeOverloaded, "the index is overloaded"},
		{"no memory", refused(429, "circuit_breaking_exception", "Data too large"), core.CodeOverloaded, "the index is overloaded"},
		{"cancelled", phase(400, "task_cancelled_exception", "task cancelled"), core.CodeUnavailable, part},
		{"a fault of the question", phase(400, "query_shard_exception", "failed to find k"), core.CodeInvalid, "the index rejected the request"},
		{"too many clauses", phase(400, "query_shard_exception", "failed to create query: maxClauseCount is set to 1024"), core.CodeInvalid, "the filter has more clauses than the index allows"},
		{"too many clauses in all", phase(400, "too_many_nested_clauses", "x"), core.CodeInvalid, "the filter has more clauses than the index allows"},
		{"another order", phase(400, "illegal_argument_exception", "Failed to parse search_after value for field [n]."), core.CodeInvalid, "the cursor does not match the sort order"},
		{"a proxy", answer{502, "<html>"}, core.CodeUnavailable, "the index returned an unexpected response"},
	}
	req := index.SearchRequest{Total: true, Hits: &index.HitsRequest{Size: 1}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := play(t, tt.answer)
			_, err := x.Search(t.Context(), "a", []index.SearchRequest{req})
			wantError(t, err, tt.code, tt.message)
			if tt.answer.status < 300 || strings.HasPrefix(tt.answer.body, "<") {
				return
			}
			// The same said of one search among several.
			x, _ = play(t, answer{200, `{"took":1,"responses":[` + found(whole).body + `,` + tt.answer.body + `]}`})
			_, err = x.Search(t.Context(), "a", []index.SearchRequest{req, req})
			wantError(t, err, tt.code, tt.message)
		})
	}
	for _, body := range []string{`{"responses":[]}`, `{"responses":[` + found(whole).body + `]}`, `{}`, `{"responses":[` + found(whole).body + `,` + found(whole).body + `,` + found(whole).body + `]}`} {
		x, _ := play(t, answer{200, body})
		_, err := x.Search(t.Context(), "a", []index.SearchRequest{req, req})
		wantError(t, err, core.CodeUnavailable, other)
	}
	x, _ := play(t, refused(404, "index_not_found_exception", "no such index [a]"))
	if _, err := x.Search(t.Context(), "a", []index.SearchRequest{req}); !errors.Is(err, core.ErrIndexMissing) {
		t.Errorf("got %v", err)
	}
}

func drain(t *testing.T, r *http.Request) {
	t.Helper()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Error(err)
	}
}

// TestSearchEnds: the end of the context closes the connection, so that the cluster cancels the search.
func TestSearchEnds(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	x := open(t, serving(t, func(_ http.ResponseWriter, r *http.Request) {
		drain(t, r) // before, the server does not look whether the connection has ended
		close(asked)
		<-r.Context().Done()
		close(gone)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := x.Search(ctx, "a", []index.SearchRequest{{Total: true}})
	wantError(t, err, core.CodeUnavailable, "the index does not answer")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-gone
}

const keywordID = `{"a-1":{"mappings":{"properties":{"label":{"type":"text"},"uid":{"type":"keyword"}}}}}`

// TestOrderOfIDs: the cluster does not sort by ids, so that a field that holds them stands for them as long as it does.
func TestOrderOfIDs(t *testing.T) {
	req := []index.SearchRequest{{Hits: &index.HitsRequest{Size: 2, Sort: []index.Sort{{Field: field("_id", "keyword")}}, Source: index.Source{None: true}}}}
	sample := found(`"hits":{"hits":[{"_id":"1","_source":{"label":"1","n":"1","uid":"1"},"sort":[0]},{"_id":"2","_source":{"label":"2","uid":"2"},"sort":[1]}]}`)
	holding := found(`"hits":{"hits":[{"_id":"1","sort":["1"]},{"_id":"2","sort":["2"]}]}`)
	other := found(`"hits":{"hits":[{"_id":"3","sort":["x"]}]}`)
	byNumber := found(`"hits":{"hits":[{"_id":"3","sort":[5]}]}`)
	settings := answer{200, settingsOf(1)}

	x, s := play(t, sample, answer{200, keywordID}, holding, other, settings, byNumber, settings, byNumber)
	for range 3 {
		if _, err := x.Search(t.Context(), "a", req); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "ids.golden", []byte(strings.Join(s.asked, "\n")+"\n"))

	// The alias may have several shards later, so that restricted callers get scores instead of numbers from the start.
	x, s = play(t, sample, answer{200, keywordID}, other, settings, seqNoSort("1.7881393E-7,", 5))
	if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 2, Sort: req[0].Hits.Sort, Restricted: true}}}); err != nil {
		t.Fatal(err)
	}
	if asked := s.asked[len(s.asked)-1]; !strings.Contains(asked, `"random_score"`) {
		t.Errorf("asked %s, want random scores", asked)
	}

	// Without documents nothing is learned; with those that have no such field it is not asked again at once.
	x, s = play(t, found(`"hits":{"hits":[]}`), found(`"hits":{"hits":[]}`),
		found(`"hits":{"hits":[{"_id":"1","_source":{"uid":"2"},"sort":[0]}]}`), settings, byNumber, byNumber)
	for range 3 {
		if _, err := x.Search(t.Context(), "a", req); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []int{1, 4, 5} {
		if !strings.Contains(s.asked[at], `"sort":[{"_seq_no":{"order":"asc"}}]`) {
			t.Errorf("asked %s", s.asked[at])
		}
	}
}

func TestStream(t *testing.T) {
	page := func(point string, total int, ids ...string) answer {
		hits := ""
		for _, id := range ids {
			hits += `{"_id":"` + id + `","_source":{"i":"` + id + `"},"sort":["` + id + `",42]},`
		}
		return answer{200, `{"pit_id":"` + point + `","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":` + strconv.Itoa(total) + `},"hits":[` + strings.TrimSuffix(hits, ",") + `]}}`}
	}
	var first []string
	for i := range 100 {
		first = append(first, fmt.Sprintf("%03d", i))
	}
	gone := refused(404, "search_context_missing_exception", "No search context found for id [321]")
	const expired = "the index has discarded its snapshot of the documents: the search took too long, or the engine was restarted"
	stop := errors.New("stop")
	tests := []struct {
		name    string
		pages   []answer
		each    error
		code    core.Code
		message string
		seen    int
		last    string
	}{
		{"nothing", []answer{page("P", 0)}, nil, "", "", 0, "P"},
		{"pages", []answer{page("P2", 102, first...), page("P3", 0, "100", "101")}, nil, "", "", 102, "P3"},
		{"a full page at the end", []answer{page("P2", 100, first...), page("P3", 0)}, nil, "", "", 100, "P3"},
		{"it was too slow", []answer{page("P2", 200, first...), gone}, nil, core.CodeUnavailable, expired, 100, "P2"},
		{"not whole", []answer{{200, `{"pit_id":"P","_shards":{"failed":1},"hits":{"hits":[]}}`}}, nil, core.CodeUnavailable, "the index returned incomplete search results", 0, "P"},
		{"no place to go on", []answer{{200, `{"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[{"_id":"a"}]}}`}}, nil, core.CodeUnavailable, "the index returned an unexpected response", 0, "P"},
		{"documents are lost", []answer{page("P2", 2000, first...), page("P3", 0, "100", "101")}, nil, core.CodeUnavailable, "the index returned 102 of 2000 documents; the result is not complete", 102, "P3"},
		{"all are lost", []answer{page("P", 7)}, nil, core.CodeUnavailable, "the index returned 0 of 7 documents; the result is not complete", 0, "P"},
		{"one is repeated", []answer{page("P2", 101, first...), page("P3", 0, "099", "100")}, nil, core.CodeUnavailable, "the index returned 102 of 101 documents; the result is not complete", 102, "P3"},
		{"not counted", []answer{{200, `{"pit_id":"P","_shards":{"failed":0},"hits":{"hits":[]}}`}}, nil, core.CodeUnavailable, "the index returned an unexpected response", 0, "P"},
		{"stopped", []answer{page("P2", 200, first...)}, stop, core.CodeInternal, "", 100, "P2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, s := play(t, append(append([]answer{{200, point}}, tt.pages...), answer{200, `{}`})...)
			seen := 0
			err := x.Stream(t.Context(), "a", index.StreamRequest{Sort: []index.Sort{{Field: field("k", "keyword")}}}, func(hits []index.Hit) error {
				for _, hit := range hits {
					if string(hit.Source) != `{"i":"`+hit.ID+`"}` || len(hit.Sort) != 1 || string(hit.Sort[0]) != `"`+hit.ID+`"` {
						t.Errorf("got %s: %s, %s", hit.ID, hit.Source, hit.Sort)
					}
					seen++
				}
				return tt.each
			})
			switch {
			case tt.each != nil:
				if !errors.Is(err, tt.each) || core.CodeOf(err) != tt.code {
					t.Errorf("got %v, want that of each", err)
				}
			case tt.code != "":
				wantError(t, err, tt.code, tt.message)
			case err != nil:
				t.Error(err)
			}
			if seen != tt.seen {
				t.Errorf("%d documents, want %d", seen, tt.seen)
			}
			if got := s.asked[len(s.asked)-1]; got != `DELETE /_pit {"id":"`+tt.last+`"}` {
				t.Errorf("ended with %s", got)
			}
		})
	}
}

// TestStreamBodies holds what pages are asked with: the second follows the first's last document.
func TestStreamBodies(t *testing.T) {
	var hits []string
	for i := range 100 {
		hits = append(hits, fmt.Sprintf(`{"_id":"%d","sort":[%d]}`, i, i))
	}
	full := answer{200, `{"pit_id":"P","_shards":{"failed":0},"hits":{"total":{"value":100},"hits":[` + strings.Join(hits, ",") + `]}}`}
	none := answer{200, `{"pit_id":"P","_shards":{"failed":0},"hits":{"hits":[]}}`}
	x, s := play(t, none, answer{200, point}, full, none, answer{200, `{}`}) // the first is the sample of the documents' size
	err := x.Stream(t.Context(), "a", index.StreamRequest{Filter: terms(field("k", "keyword"), "x"), Source: index.Source{Paths: []string{"k"}}},
		func([]index.Hit) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "stream.golden", []byte(strings.Join(s.asked, "\n")+"\n"))
}

// reservations are the bytes reserved of each page of a stream.
type reservations struct {
	mu       sync.Mutex
	held     int64
	reserved []int64
}

func (m *reservations) Reserve(_ context.Context, _ core.Caller, n int64) (shrink func(to int64), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held += n
	m.reserved = append(m.reserved, n)
	return func(to int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held -= n - min(n, to)
		n = min(n, to)
	}, nil
}

func (m *reservations) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	shrink, err := m.Reserve(ctx, c, n)
	return func() { shrink(0) }, err
}

// TestStreamIsBoundedByBytes: a page of several documents has at most 4 MB, and a larger document a page of its own; twice the bytes of the page
// are reserved before it is requested, and held while the documents are used. Also if only a small column is requested, the cluster reads no
// more documents for a page than fit into 4 MB, and fewer while it has too little memory.
func TestStreamIsBoundedByBytes(t *testing.T) {
	const documents, megabyte, pageBytes = 12, 1 << 20, 4 << 20
	for name, c := range map[string]struct {
		bytes   int
		paths   []string
		breaks  int // the number of documents for which the cluster has no memory
		largest int // page with documents
	}{
		"whole documents":                   {bytes: megabyte, largest: 3},
		"whole documents over the bound":    {bytes: 5 * megabyte, largest: 1},
		"small columns":                     {bytes: megabyte, paths: []string{"n"}, largest: 3},
		"small columns of larger documents": {bytes: 5 * megabyte, paths: []string{"n"}, largest: 1},
		"a cluster with little memory":      {bytes: 1000, breaks: 5, largest: 3},
	} {
		t.Run(name, func(t *testing.T) {
			m, broken := &reservations{}, 0
			text := strings.Repeat("x", c.bytes)
			x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				size := int(gjson.GetBytes(body, "size").Int())
				switch {
				case strings.HasSuffix(r.URL.Path, "/_pit") && r.Method == http.MethodPost:
					_, _ = w.Write([]byte(point))
					return
				case r.Method == http.MethodDelete:
					_, _ = w.Write([]byte(`{}`))
					return
				case c.breaks > 0 && size >= c.breaks:
					broken++
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = w.Write([]byte(`{"error":{"type":"circuit_breaking_exception","reason":"[request] Data too large"},"status":429}`))
					return
				}
				_, _ = w.Write([]byte(`{"pit_id":"P","timed_out":false,"_shards":{"failed":0,"total":1},"hits":{"total":{"value":12},"hits":[`))
				from := int(gjson.GetBytes(body, "search_after.0").Int())
				for i := from; i < min(documents, from+size); i++ {
					source := fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, text)
					if gjson.GetBytes(body, "_source").IsArray() {
						source = fmt.Sprintf(`{"n":%d}`, i)
					}
					_, _ = fmt.Fprintf(w, `%s{"_id":"d%d","_source":%s,"sort":[%d]}`, []string{"", ","}[min(1, i-from)], i, source, i+1)
				}
				_, _ = w.Write([]byte(`]}}`))
			}), func(cfg *elastic.Config) { cfg.Memory = m })
			seen, largest := 0, 0
			err := x.Stream(t.Context(), "a", index.StreamRequest{Source: index.Source{Paths: c.paths}}, func(hits []index.Hit) error {
				bytes := 0
				for _, hit := range hits {
					bytes += len(hit.Source)
				}
				seen, largest = seen+len(hits), max(largest, len(hits))
				if len(hits) > 1 && bytes > pageBytes || m.held < 2*int64(bytes) || m.held > 4*int64(bytes)+2000 {
					t.Errorf("a page of %d documents with %d bytes, while %d bytes are held", len(hits), bytes, m.held)
				}
				return nil
			})
			if err != nil || seen != documents || largest != c.largest || m.held != 0 || len(m.reserved) == 0 || m.reserved[0] != 2*pageBytes || len(m.reserved) > 4*documents {
				t.Errorf("%v, %d documents in pages of at most %d; %d bytes are held of %v", err, seen, largest, m.held, m.reserved)
			}
			if broken > 10 { // halving twice, for the sample and for the first page, but not for each page
				t.Errorf("the cluster had too little memory for %d requests", broken)
			}
		})
	}
}

// TestStreamEnds: a point in time is closed when the caller stops reading.
func TestStreamEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan string, 1)
	x := open(t, serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/_pit") && r.Method == http.MethodPost:
			_, _ = w.Write([]byte(point))
		case r.Method == http.MethodDelete:
			closed <- r.URL.Path
		default:
			drain(t, r)
			cancel()
			<-r.Context().Done()
		}
	}))
	err := x.Stream(ctx, "a", index.StreamRequest{}, func([]index.Hit) error { return nil })
	if core.CodeOf(err) != core.CodeUnavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := <-closed; got != "/_pit" {
		t.Errorf("asked %s", got)
	}
}

// FuzzSearchAnswer: whatever the cluster says, it is an answer or an error.
func FuzzSearchAnswer(f *testing.F) {
	f.Add([]byte(`{"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[{"_id":"a","_source":{"a":[1,"\"]"]},"sort":["x",1]}]}}`))
	f.Add([]byte(`{"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[]},"aggregations":{"a0":{"e":{"t":{"sum_other_doc_count":0,"buckets":[{"key":1.5E3,"doc_count":1,"d":{"doc_count":1},"x":{"f0":{"doc_count":1},"h":{"hits":{"hits":[]}}}}]},"h":{"buckets":[{"key":0.0,"doc_count":1,"d":{"doc_count":1}}]},"r":{"buckets":[{"key":"0","d":{"doc_count":1}}]},"s":{"count":0,"min":null}}}}}`))
	f.Add([]byte(manyBuckets))
	f.Add([]byte(`{"responses":[{"_shards":{"failed":0},"hits":{"hits":[]}},{"_shards":{"failed":0},"hits":{"total":{"value":1}},"aggregations":{}}]}`))
	var body []byte
	x := open(f, serving(f, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }), func(c *elastic.Config) { c.Timeout = 0 })
	n := field("a.n", "double", "a")
	hits := index.SearchRequest{Total: true, Hits: &index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: n}}}}
	facets := index.SearchRequest{Facets: []index.Facet{{
		Field: n, Elements: exists(n), Missing: true, Stats: true, Histogram: 1, Cardinality: 1, Ranges: make([]index.NumberRange, 1),
		Buckets: &index.Buckets{Max: 2, Filters: []*query.Node{nil}},
	}}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body = raw
		for _, reqs := range [][]index.SearchRequest{{hits}, {facets}, {hits, facets}} {
			got, err := x.Search(t.Context(), "a", reqs)
			if err != nil {
				if core.CodeOf(err) == core.CodeInternal {
					t.Fatalf("got %v", err)
				}
				continue
			}
			if len(got) != len(reqs) {
				t.Fatalf("%d results", len(got))
			}
			for _, hit := range got[0].Hits {
				for _, part := range append(hit.Sort, hit.Source) {
					if strings.Count(string(part), `"`)%2 != 0 && !strings.Contains(string(part), `\`) {
						t.Fatalf("read %q out of %q", part, raw)
					}
				}
			}
		}
	})
}
