//go:build services

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// TestWriteRightWithdrawn: an engine answers a bulk request of a user who may not write with status 200, and each document with 403. The
// repository is paused, /ready names the action that the engine refuses, nothing becomes a dead letter, and once the right is granted again
// everything that was accepted is indexed.
func TestWriteRightWithdrawn(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL"))
	if err != nil {
		t.Fatal(err)
	}
	var withdrawn atomic.Bool
	calls := &http.Transport{}
	t.Cleanup(calls.CloseIdleConnections)
	pass := forwardTo(target, calls)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if withdrawn.Load() && strings.HasSuffix(r.URL.Path, "/_bulk") {
			forbidBulk(t, w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	w := newWorld(t, settings{pageSize: 20, elasticsearch: proxy.URL})
	t.Cleanup(func() { w.engine.(*elasticEngine).removeIndex(w.alias) })
	w.start()
	w.fill("S1", 30)
	w.run("", "", core.JobSucceeded)
	withdrawn.Store(true)
	w.fill("S2", 30)
	id := w.startRun("", "")
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		reason := a.get(`paused.0.reason`).String()
		return strings.Contains(reason, "the user of the index lacks a privilege: the engine refuses indices:data/write/bulk[s]") &&
			strings.Contains(string(a.raw), "each indexName and indexName-*"), string(a.raw)
	})
	withdrawn.Store(false)
	w.awaitPaused(false)
	w.awaitJob(id)
	w.wantConverged()
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// forbidBulk answers a bulk request as Elasticsearch 8.19 and OpenSearch do that of a user without the right to write.
func forbidBulk(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	type item map[string]any
	var items []item
	lines := bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	for i := 0; i < len(lines); i++ {
		gjson.ParseBytes(lines[i]).ForEach(func(verb, action gjson.Result) bool {
			items = append(items, item{verb.String(): map[string]any{
				"_index": strings.Trim(strings.TrimSuffix(r.URL.Path, "_bulk"), "/"), "_id": action.Get("_id").String(), "status": http.StatusForbidden,
				"error": map[string]any{
					"type":   "security_exception",
					"reason": "action [indices:data/write/bulk[s]] is unauthorized for user [tutti] with effective roles [tutti], this action is granted by the index privileges [create_doc,create,delete,index,write,all]",
				},
			}})
			if verb.String() != "delete" {
				i++
			}
			return true
		})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	if err := json.NewEncoder(w).Encode(map[string]any{"took": 1, "errors": true, "items": items}); err != nil {
		t.Log(fmt.Errorf("answering: %w", err))
	}
}
