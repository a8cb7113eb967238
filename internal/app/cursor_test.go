package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// TestCursorsAfterRestart: the cursors of a process are valid in the next process on the same store, also where they are encrypted.
func TestCursorsAfterRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case strings.HasPrefix(r.URL.Path, "/a/_settings"):
			answers(http.StatusOK, `{"a-1":{"settings":{"index":{"uuid":"U","number_of_shards":"1"}}}}`)(w, r)
		case err != nil || r.URL.Path != "/a/_search":
			refuses(http.StatusServiceUnavailable, "cluster_block_exception")(w, r)
		case strings.Contains(string(body), `"sort":["_doc"]`):
			answers(http.StatusOK, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_index":"a-1","_id":"1","_source":{}}]}}`)(w, r)
		default:
			answers(http.StatusOK, `{"_shards":{"total":1,"failed":0},"hits":{"hits":[{"_index":"a-1","_id":"1","sort":[7]}]}}`)(w, r)
		}
	})
	cfg, err := config.Parse([]byte("dataDir: "+t.TempDir()+`
server: {listen: "127.0.0.1:0"}
index: {url: "`+c.server.URL+`"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var after []json.RawMessage
	for _, process := range []string{"first", "second"} {
		a, err := app.New(cfg, app.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := a.Index().Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{
			Size: 1, Sort: []index.Sort{{Field: query.Field{Path: query.IDPath, Type: "keyword"}}}, Source: index.Source{None: true}, After: after,
		}}})
		if err == nil {
			after = got[0].Hits[0].Sort
		}
		if stopped := a.Stop(t.Context()); err != nil || stopped != nil {
			t.Fatalf("the %s process: %v, %v", process, err, stopped)
		}
	}
}
