//go:build services

package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/app"
	"tutti/internal/tools/testkit"
)

// elasticEngine is a real Elasticsearch behind two proxies: the first injects faults into whole requests, the second refuses single
// documents. That of one test alone has no proxies.
type elasticEngine struct {
	t      *testing.T
	direct string
	items  *itemProxy
	whole  *testkit.FaultProxy
	client *http.Client
}

func newEngine(t *testing.T, w *world) engine {
	t.Helper()
	direct := os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL")
	if w.set.elasticsearch != "" {
		direct = w.set.elasticsearch
	}
	if direct == "" {
		t.Fatal("TUTTI_TEST_ELASTICSEARCH_URL is not set: eval \"$(deploy/local/engine/start | sed 's/^/export /')\"")
	}
	e := &elasticEngine{t: t, direct: strings.TrimSuffix(direct, "/"), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(e.client.CloseIdleConnections)
	if status, body := e.call(http.MethodGet, "/_cluster/health", ""); status != http.StatusOK {
		t.Fatalf("the Elasticsearch at %s answers %d: %s", direct, status, body)
	}
	if w.set.elasticsearch != "" {
		return e
	}
	t.Cleanup(func() { e.removeIndex(w.alias) })
	e.items = newItemProxy(t, e.direct)
	var err error
	if e.whole, err = testkit.NewFaultProxy(e.items.url, 7, w.set.rates); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.whole.Close)
	return e
}

func (e *elasticEngine) url() string {
	if e.whole == nil {
		return e.direct
	}
	return e.whole.URL()
}

func (e *elasticEngine) openSearch() bool {
	e.t.Helper()
	_, body := e.call(http.MethodGet, "/", "")
	return gjson.GetBytes(body, "version.distribution").String() == "opensearch"
}

func (e *elasticEngine) replace(*app.Options) {}

func (e *elasticEngine) setDown(down bool) {
	e.t.Helper()
	if err := e.whole.SetDown(down); err != nil {
		e.t.Fatal(err)
	}
}

func (e *elasticEngine) injectFaults(on bool) {
	e.whole.On(on)
	e.items.on.Store(on)
}

func (e *elasticEngine) faults() (whole, items int64) {
	c := e.whole.Counts()
	return c.Requests - c.Passed, e.items.refused.Load()
}

func (e *elasticEngine) largestBulk() (int64, bool) { return e.items.largest.Load(), true }

// call sends a request to the real engine, without the proxies.
func (e *elasticEngine) call(method, path, body string) (int, []byte) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(e.t.Context()), method, e.direct+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func (e *elasticEngine) removeIndex(alias string) {
	status, body := e.call(http.MethodGet, "/_alias/"+alias, "")
	if status != http.StatusOK {
		return // it was never created
	}
	gjson.ParseBytes(body).ForEach(func(name, _ gjson.Result) bool {
		e.call(http.MethodDelete, "/"+name.String(), "")
		return true
	})
}

// documents reads the sources from the engine, without tutti's code.
func (e *elasticEngine) documents(w *world) map[string][]byte {
	e.t.Helper()
	switch status, body := e.call(http.MethodPost, "/"+w.alias+"/_refresh", ""); {
	case status == http.StatusNotFound && gjson.GetBytes(body, "error.type").String() == "index_not_found_exception":
		return nil // tutti has not created it yet
	case status != http.StatusOK:
		e.t.Fatalf("refreshing: %d %s", status, body)
	}
	documents := map[string][]byte{}
	after := ""
	for {
		status, body := e.call(http.MethodPost, "/"+w.alias+"/_search",
			`{"size":200,"track_total_hits":false,"sort":[`+
				`{"analysisId":{"order":"asc","unmapped_type":"keyword"}},{"object_id":{"order":"asc","unmapped_type":"keyword"}}]`+after+`}`)
		if status != http.StatusOK {
			e.t.Fatalf("searching: %d %s", status, body)
		}
		var page struct {
			Hits struct {
				Hits []struct {
					ID     string          `json:"_id"`
					Source json.RawMessage `json:"_source"`
					Sort   json.RawMessage `json:"sort"`
				} `json:"hits"`
			} `json:"hits"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			e.t.Fatal(err)
		}
		if len(page.Hits.Hits) == 0 {
			return documents
		}
		for _, hit := range page.Hits.Hits {
			documents[hit.ID] = hit.Source
			after = `,"search_after":` + string(hit.Sort)
		}
	}
}

// itemProxy passes everything on, but lets only some documents of a bulk request through while it is on: the others
// are answered as an overloaded engine does.
type itemProxy struct {
	url     string
	on      atomic.Bool
	refused atomic.Int64
	largest atomic.Int64
	bulks   atomic.Int64
	target  *url.URL
	calls   *http.Transport
	// refuses, when set, reports whether a request is answered by a closed connection.
	refuses atomic.Pointer[func(*http.Request) bool]
}

func newItemProxy(t *testing.T, target string) *itemProxy {
	t.Helper()
	base, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &itemProxy{target: base, calls: &http.Transport{MaxIdleConnsPerHost: 16}}
	pass := forwardTo(base, p.calls)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses := p.refuses.Load(); refuses != nil && (*refuses)(r) {
			panic(http.ErrAbortHandler)
		}
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			pass.ServeHTTP(w, r)
			return
		}
		p.bulks.Add(1)
		p.note(r.ContentLength)
		if !p.on.Load() {
			pass.ServeHTTP(w, r)
			return
		}
		p.bulk(w, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
		p.calls.CloseIdleConnections()
	})
	return p
}

// note keeps the size of the largest bulk request.
func (p *itemProxy) note(size int64) {
	for {
		old := p.largest.Load()
		if size <= old || p.largest.CompareAndSwap(old, size) {
			return
		}
	}
}

// bulk passes a part of a bulk request on and answers 429 for the rest of its documents.
func (p *itemProxy) bulk(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	ops := parseBulk(body)
	var passed bytes.Buffer
	refused := make([]bool, len(ops))
	for i, op := range ops {
		if refused[i] = rand.IntN(4) == 0; !refused[i] {
			passed.Write(op.lines)
		}
	}
	var items []json.RawMessage
	if passed.Len() > 0 {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.target.Scheme, p.target.Host, p.target.Host, ""
		out.Body, out.ContentLength = io.NopCloser(&passed), int64(passed.Len())
		resp, err := p.calls.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		for _, item := range gjson.GetBytes(answer, "items").Array() {
			items = append(items, json.RawMessage(item.Raw))
		}
	}
	all := make([]json.RawMessage, 0, len(ops))
	for i, op := range ops {
		if !refused[i] {
			if len(items) == 0 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			all, items = append(all, items[0]), items[1:]
			continue
		}
		p.refused.Add(1)
		all = append(all, fmt.Appendf(nil, `{%q:{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"rejected execution of coordinating operation"}}}`, op.name))
	}
	answer, err := json.Marshal(map[string]any{"errors": true, "items": all})
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	_, _ = w.Write(answer) // the client may have gone
}

type bulkOp struct {
	name  string
	lines []byte
}

// parseBulk splits a bulk body into its operations.
func parseBulk(body []byte) []bulkOp {
	var ops []bulkOp
	for len(body) > 0 {
		action, rest, _ := bytes.Cut(body, []byte{'\n'})
		name := "index"
		if gjson.GetBytes(action, "delete").Exists() {
			name = "delete"
		} else {
			_, rest, _ = bytes.Cut(rest, []byte{'\n'})
		}
		ops = append(ops, bulkOp{name: name, lines: body[:len(body)-len(rest)]})
		body = rest
	}
	return ops
}

// runtimeFields reports whether the engine is an Elasticsearch.
func (e *elasticEngine) runtimeFields() bool { return !e.openSearch() }
