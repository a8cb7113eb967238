package elastic_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

// wire is the connection to a cluster that is played, and keeps of each request what is sent beside its body.
type wire struct {
	cluster http.Handler
	sent    strings.Builder
}

// RoundTrip has the cluster answer.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	path, query, _ := strings.Cut(r.URL.RequestURI(), "?")
	query, err := url.QueryUnescape(query)
	if err != nil {
		return nil, err
	}
	if path == "/" || strings.HasPrefix(path, "/_nodes/") {
		answered := httptest.NewRecorder()
		identified(elasticsearch8, nil)(answered, r)
		return answered.Result(), nil
	}
	fmt.Fprintf(&w.sent, "%s %s\n", r.Method, path)
	parameters := strings.Split(query, "&")
	slices.Sort(parameters)
	for _, p := range parameters {
		if p != "" {
			fmt.Fprintf(&w.sent, "  ?%s\n", p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name != "User-Agent" {
			fmt.Fprintf(&w.sent, "  %s: %s\n", name, strings.Join(r.Header[name], " & "))
		}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Body != http.NoBody {
		again, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(again)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&w.sent, "  a body of %t length\n", r.ContentLength == int64(len(body)))
	}
	answered := httptest.NewRecorder()
	w.cluster.ServeHTTP(answered, r)
	return answered.Result(), nil
}

// TestRequests holds the address, the parameters and the headers of every request. The names of the alias and of an index hold
// what has to be escaped in an address, and what looks as if it were.
func TestRequests(t *testing.T) {
	const alias = "[a];a+b@c$"
	hit := found(`"hits":{"hits":[{"_id":"1","_source":{"uid":"1"},"sort":["1"]}]}`)
	page := answer{200, `{"pit_id":"P","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":0},"hits":[]}}`}
	settings := answer{200, `{"données%41":{"settings":{"index":{"uuid":"U","number_of_shards":"2"}}}}`}
	missing := answer{404, `{"error":"alias [a] missing","status":404}`}
	conflict := items(`{"index":{"status":409,"error":{"type":"version_conflict_engine_exception"}}}`)
	one, sorted := index.HitsRequest{Size: 1}, index.HitsRequest{Size: 1, Sort: []index.Sort{{Field: field("_id", "keyword")}}}
	ids := index.HitsRequest{Size: 1, Source: index.Source{None: true}}
	idsByNumber := index.HitsRequest{Size: 1, Source: ids.Source, Sort: sorted.Sort}
	search := func(reqs ...index.SearchRequest) func(*elastic.Index) error {
		return func(x *elastic.Index) error {
			_, err := x.Search(t.Context(), alias, reqs)
			return err
		}
	}
	write := func(x *elastic.Index) error {
		_, err := x.Write(t.Context(), batch(x, alias, put("1", 1, `{}`)))
		return err
	}
	steps := []struct {
		name    string
		answers []answer
		do      func(*elastic.Index) error
	}{
		{"ping", []answer{{200, `{}`}}, func(x *elastic.Index) error { return x.Ping(t.Context()) }},
		{"refresh", []answer{{200, `{}`}}, func(x *elastic.Index) error { return x.Refresh(t.Context(), alias) }},
		{"make", []answer{missing, {200, `{}`}}, func(x *elastic.Index) error { return x.Ensure(t.Context(), index.Spec{Alias: alias}) }},
		{"adapt", []answer{{200, `{"a-1":{"aliases":{"` + alias + `":{}}}}`}, {200, smallTree}, {200, done}}, func(x *elastic.Index) error {
			return x.Ensure(t.Context(), index.Spec{Alias: alias, Known: mapping.Song()})
		}},
		{"lost", []answer{missing, {200, `{}`}, {200, `{}`}}, func(x *elastic.Index) error {
			return x.Ensure(t.Context(), index.Spec{Alias: alias, Identity: "données%41/U"})
		}},
		{"check", []answer{conflict, settings, {200, `{}`}}, func(x *elastic.Index) error {
			if err := x.Check(t.Context(), alias); core.CodeOf(err) != core.CodeUnavailable {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}},
		{"write", []answer{{200, oneIndexed}}, write},
		{"get", []answer{{200, `{"docs":[{"found":false}]}`}}, func(x *elastic.Index) error {
			_, _, err := x.Get(t.Context(), alias, "1")
			return err
		}},
		{"count", []answer{{200, `{"count":1}`}}, func(x *elastic.Index) error {
			_, err := x.Count(t.Context(), alias, core.IndexScope{})
			return err
		}},
		{"scan", []answer{{200, point}, page, {200, `{}`}}, func(x *elastic.Index) error {
			return x.Scan(t.Context(), alias, core.IndexScope{}, 0, func(string, core.Version) error { return nil })
		}},
		{"stream", []answer{{200, point}, page, {200, `{}`}}, func(x *elastic.Index) error {
			return x.Stream(t.Context(), alias, index.StreamRequest{}, func([]index.Hit) error { return nil })
		}},
		{"documents", []answer{hit}, search(index.SearchRequest{Hits: &one})},
		{"ids", []answer{hit}, search(index.SearchRequest{Hits: &ids})},
		{"the order of ids", []answer{found(`"hits":{"hits":[]}`), found(`"hits":{"hits":[]}`)}, search(index.SearchRequest{Hits: &idsByNumber})},
		{"counts", []answer{found(`"hits":{"total":{"value":1}}`)}, search(index.SearchRequest{Total: true})},
		{"several", []answer{{200, `{"responses":[` + hit.body + `,` + hit.body + `]}`}}, search(index.SearchRequest{Hits: &one}, index.SearchRequest{Hits: &one})},
	}
	var all strings.Builder
	for _, compressed := range []bool{false, true} {
		for _, step := range steps {
			if compressed && step.name != "write" {
				continue
			}
			w := &wire{cluster: &script{t: t, answers: step.answers}}
			x := open(t, "http://127.0.0.1:1", func(c *elastic.Config) {
				c.Compress, c.Now = compressed, func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) }
			})
			if err := x.SendBy(w); err != nil {
				t.Fatal(err)
			}
			if err := step.do(x); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			fmt.Fprintf(&all, "# %s\n%s", step.name, w.sent.String())
		}
	}
	golden(t, "requests.golden", []byte(all.String()))
}

// instantCluster is a cluster that answers at once.
type instantCluster struct{ answer string }

// RoundTrip reads the request's body, and answers.
func (i instantCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(i.answer)), Request: r}, nil
}

// BenchmarkRequest measures what a request costs without the network.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name, answer string
		do           func(*elastic.Index, core.Batch) error
	}{
		{"bulk", oneIndexed, func(x *elastic.Index, batch core.Batch) error {
			_, err := x.Write(b.Context(), batch)
			return err
		}},
		{"search", found(`"hits":{"hits":[{"_id":"1","_source":{"uid":"1"},"sort":["1"]}]}`).body, func(x *elastic.Index, _ core.Batch) error {
			_, err := x.Search(b.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 20, Sort: []index.Sort{{Field: field("k", "keyword")}}}}})
			return err
		}},
		{"ids", found(`"hits":{"hits":[{"_id":"1","sort":["1"]}]}`).body, func(x *elastic.Index, _ core.Batch) error {
			_, err := x.Search(b.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 20, Source: index.Source{None: true}, Sort: []index.Sort{{Field: field("k", "keyword")}}}}})
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := open(b, "http://127.0.0.1:1")
			if err := x.SendBy(instantCluster{c.answer}); err != nil {
				b.Fatal(err)
			}
			written := batch(x, "a", put("v", 1, `{"a":"`+strings.Repeat("x", 2048)+`"}`))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.do(x, written); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
