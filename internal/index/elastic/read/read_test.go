package read_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/read"
	"tutti/internal/index/elastic/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the reader of an Elasticsearch 8 whose requests other than those that identify it are answered by handler.
func serve(t *testing.T, handler http.HandlerFunc, timeout time.Duration, memory core.Memory) *read.Reader {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			_, _ = w.Write([]byte(`{"cluster_name":"c1","version":{"number":"8.19.2"},"tagline":"You Know, for Search"}`))
		case "/_nodes/_all/http":
			w.WriteHeader(http.StatusForbidden)
		default:
			handler(w, r)
		}
	}))
	t.Cleanup(server.Close)
	client, err := transport.New(transport.Config{URLs: []string{server.URL}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return read.New(client, aliases.New(client, nil, nil), memory)
}

type answer struct {
	status int // 0 cuts the answer
	body   string
}

// play returns the reader of a cluster with these answers in order, and what it was asked.
func play(t *testing.T, answers ...answer) (*read.Reader, *[]string) {
	t.Helper()
	var asked []string
	x := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		if len(asked) > len(answers) {
			t.Errorf("also asked %s", asked[len(asked)-1])
			return
		}
		next := answers[len(asked)-1]
		if next.status == 0 {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(next.status)
		_, _ = io.WriteString(w, next.body)
	}, 30*time.Second, nil)
	return x, &asked
}

// TestScanIsWhole: a page that not all shards answered would make a sweep believe in documents that were not seen.
func TestScanIsWhole(t *testing.T) {
	tests := []struct {
		name string
		page answer
		code core.Code
	}{
		{"whole", answer{200, `{"pit_id":"P","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[{"_id":"a","_version":5,"sort":[0]}]}}`}, ""},
		{"documents are lost", answer{200, `{"pit_id":"P","timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":2},"hits":[{"_id":"a","_version":5,"sort":[0]}]}}`}, core.CodeUnavailable},
		{"a shard failed", answer{200, `{"pit_id":"P","timed_out":false,"_shards":{"failed":1},"hits":{"total":{"value":1},"hits":[{"_id":"a","_version":5,"sort":[0]}]}}`}, core.CodeUnavailable},
		{"timed out", answer{200, `{"pit_id":"P","timed_out":true,"_shards":{"failed":0},"hits":{"total":{"value":1},"hits":[{"_id":"a","_version":5,"sort":[0]}]}}`}, core.CodeUnavailable},
		{"another answer", answer{200, `{}`}, core.CodeUnavailable},
		{"the point is gone", answer{404, `{"error":{"type":"search_context_missing_exception"}}`}, core.CodeUnavailable},
		{"no shard", answer{503, `{"error":{"type":"search_phase_execution_exception","reason":"all shards failed"}}`}, core.CodeOverloaded},
		{"cut", answer{}, core.CodeUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, asked := play(t, answer{200, `{"id":"P","_shards":{"failed":0}}`}, tt.page, answer{200, `{}`})
			var seen []string
			err := x.Scan(t.Context(), "a", core.IndexScope{}, 0, func(id string, _ core.Version) error {
				seen = append(seen, id)
				return nil
			})
			if core.CodeOf(err) != tt.code {
				t.Errorf("got %v", err)
			}
			if tt.code != "" && seen != nil && tt.name != "documents are lost" {
				t.Errorf("%v was seen on a page that is not whole", seen)
			}
			if got := (*asked)[len(*asked)-1]; got != `DELETE /_pit {"id":"P"}` {
				t.Errorf("ended with %s", got)
			}
		})
	}
}

func TestScopeQueries(t *testing.T) {
	tree := `{"a-1":{"mappings":{"properties":{` +
		`"plain":{"type":"keyword"},"text":{"type":"text","fields":{"lower":{"type":"keyword","normalizer":"n"},"raw":{"type":"keyword"}}},` +
		`"repositories":{"type":"nested","properties":{"code":{"type":"keyword"}}}}}}}`
	nested := `{"nested":{"path":"repositories","query":{"term":{"repositories.code":{"value":"r"}}}}}`
	tests := []struct {
		scope core.IndexScope
		want  string
	}{
		{core.IndexScope{Field: "plain", Organization: "S"}, `{"term":{"plain":{"value":"S"}}}`},
		{core.IndexScope{Field: "text", Organization: "S"}, `{"term":{"text.raw":{"value":"S"}}}`},
		{core.IndexScope{Field: "none", Organization: "S"}, `{"match_none":{}}`},
		{core.IndexScope{Repository: "r"}, nested},
		{core.IndexScope{Repository: "r", Field: "plain", Organization: "S"}, nested + `,{"term":{"plain":{"value":"S"}}}`},
		{core.IndexScope{Repository: "r", Field: "plain"}, nested + `,{"term":{"plain":{"value":""}}}`},
	}
	for _, tt := range tests {
		x, asked := play(t, answer{200, tree}, answer{200, `{"count":7,"_shards":{"failed":0}}`})
		n, err := x.Count(t.Context(), "a", tt.scope)
		if err != nil || n != 7 {
			t.Errorf("got %d, %v", n, err)
		}
		want := `POST /a/_count {"query":{"bool":{"filter":[` + tt.want + `]}}}`
		if diff := cmp.Diff(want, (*asked)[1]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGetErrors(t *testing.T) {
	fault := func(kind string) answer {
		return answer{200, `{"docs":[{"error":{"type":"` + kind + `","reason":"r"}}]}`}
	}
	x, _ := play(t, fault("index_not_found_exception"), fault("no_shard_available_action_exception"), answer{200, `{"docs":[]}`},
		answer{200, `{"docs":[{"_index":"a-1","found":true,"_version":1763716000123456789,"_source": {"n":1.0,"e":1e3,"s":"\u00e9"} }]}`})
	for _, code := range []core.Code{core.CodeIndexBlocked, core.CodeUnavailable, core.CodeUnavailable} {
		if _, found, err := x.Get(t.Context(), "a", "1"); found || core.CodeOf(err) != code {
			t.Errorf("got %t, %v", found, err)
		}
	}
	doc, found, err := x.Get(t.Context(), "a", "1")
	want := core.StoredDocument{ID: "1", Version: 1763716000123456789, Source: []byte(` {"n":1.0,"e":1e3,"s":"\u00e9"} `), Index: "a-1"}
	if diff := cmp.Diff(want, doc); diff != "" || !found || err != nil {
		t.Errorf("%s, found %t, %v", diff, found, err)
	}
}

func TestCountIsWhole(t *testing.T) {
	x, _ := play(t, answer{200, `{"count":7,"_shards":{"failed":1}}`})
	if _, err := x.Count(t.Context(), "a", core.IndexScope{}); core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "not all shards of the index a answered" {
		t.Errorf("got %v", err)
	}
}

// TestGetAllInParts: documents that are together larger than 4 MB are read in several responses, in order. The memory of a large response is
// held while its documents are used, and that of one document as well.
func TestGetAllInParts(t *testing.T) {
	for name, c := range map[string]struct {
		bytes    int
		asked    []int
		reserved []int64
	}{
		"small":               {20_000, []int{5}, nil},
		"together large":      {100_000, []int{5}, []int64{12}},
		"larger than 4 MB":    {1_500_000, []int{5, 2, 2, 1}, []int64{12, 12, 12, 12}},
		"each larger than it": {6_000_000, []int{5, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int64{12, 12, 12, 48, 12, 48, 12, 48, 12, 48, 12, 48}},
		"larger than 16 MB":   {20_000_000, []int{5, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []int64{12, 12, 12, 48, 192, 12, 48, 192, 12, 48, 192, 12, 48, 192, 12, 48, 192}},
	} {
		t.Run(name, func(t *testing.T) {
			text, m := strings.Repeat("x", c.bytes), &reservations{}
			var asked []int
			x := serve(t, func(w http.ResponseWriter, r *http.Request) {
				var body struct{ IDs []string }
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				asked = append(asked, len(body.IDs))
				for i, id := range body.IDs {
					_, _ = fmt.Fprintf(w, `%s{"_index":"a-1","_id":%q,"_version":1,"found":true,"_source":{"id":%q,"text":%q}}`, []string{`{"docs":[`, ","}[min(i, 1)], id, id, text)
				}
				_, _ = w.Write([]byte(`]}`))
			}, 30*time.Second, m)
			held := func(large bool) {
				t.Helper()
				if (m.held > 0) != large {
					t.Errorf("%d bytes are held", m.held)
				}
			}
			ids, got := []string{"a", "b", "c", "d", "e"}, []string(nil)
			err := x.GetAll(t.Context(), "a", ids, func(i int, doc core.StoredDocument, found bool) {
				if !found || doc.ID != ids[i] || !strings.HasPrefix(string(doc.Source), fmt.Sprintf(`{"id":%q`, doc.ID)) {
					t.Errorf("document %d is %s: %.20s", i, doc.ID, doc.Source)
				}
				held(c.reserved != nil)
				got = append(got, doc.ID)
			})
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("got %q, %v", got, err)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked for %d documents, want %d", asked, c.asked)
			}
			for i := range m.reserved {
				m.reserved[i] >>= 20
			}
			if !slices.Equal(m.reserved, c.reserved) {
				t.Errorf("reserved %d MiB, want %d", m.reserved, c.reserved)
			}
			held(false)

			before := len(m.reserved)
			doc, found, err := x.Get(t.Context(), "a", "a")
			if err != nil || !found || len(doc.Source) < c.bytes {
				t.Errorf("a document of %d bytes, %t, %v", len(doc.Source), found, err)
			}
			if large := len(m.reserved) > before; large != (c.bytes > 256<<10) {
				t.Errorf("memory is reserved for one document: %t", large)
			}
			held(false)
		})
	}
}

// TestGetAllWaitsForMemory: a response that waits for memory until its request has timed out is requested once more, while the memory is held.
// When no memory is free in time, the error is returned.
func TestGetAllWaitsForMemory(t *testing.T) {
	text := strings.Repeat("x", 500_000)
	asked, gone := 0, make(chan struct{})
	m := waiting{&reservations{}, gone, nil}
	x := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			_, _ = w.Write([]byte(`{"docs":[{"text":"` + text))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
			return
		}
		_, _ = fmt.Fprintf(w, `{"docs":[{"_index":"a-1","_id":"a","_version":1,"found":true,"_source":{"text":%q}}]}`, text)
	}, 1100*time.Millisecond, &m)
	found := false
	if err := x.GetAll(t.Context(), "a", []string{"a"}, func(_ int, _ core.StoredDocument, is bool) { found = is }); err != nil || !found || asked != 2 {
		t.Errorf("found %t by %d requests, %v", found, asked, err)
	}
	if m.held != 0 || len(m.reserved) != 1 {
		t.Errorf("%d bytes are held, %d were reserved", m.held, m.reserved)
	}
	m.err = core.NewError(core.CodeOverloaded, "too many large bodies are being processed")
	if err := x.GetAll(t.Context(), "a", []string{"a"}, func(int, core.StoredDocument, bool) {}); core.CodeOf(err) != core.CodeOverloaded {
		t.Errorf("without memory: %v", err)
	}
}

// waiting is a memory that is free after the request has timed out.
type waiting struct {
	*reservations
	free <-chan struct{}
	err  error
}

func (m *waiting) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	if m.err != nil {
		return nil, m.err
	}
	<-m.free
	return m.reservations.Acquire(ctx, c, n)
}

// reservations are the bytes that were reserved, and those that are held.
type reservations struct {
	held     int64
	reserved []int64
}

func (m *reservations) Reserve(_ context.Context, _ core.Caller, n int64) (shrink func(to int64), err error) {
	m.held += n
	m.reserved = append(m.reserved, n)
	return func(to int64) {
		m.held -= n - min(n, to)
		n = min(n, to)
	}, nil
}

func (m *reservations) Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error) {
	shrink, err := m.Reserve(ctx, c, n)
	return func() { shrink(0) }, err
}
