//go:build services

package check_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/testkit"
)

// TestRealElasticsearch looks at an Elasticsearch with which tutti works: without an alias, with one, and with an index in
// the alias's place.
func TestRealElasticsearch(t *testing.T) {
	engine := os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL")
	if engine == "" {
		t.Fatal("TUTTI_TEST_ELASTICSEARCH_URL is not set: eval \"$(deploy/local/elasticsearch/start | sed 's/^/export /')\"")
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	call := func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequest(method, strings.TrimSuffix(engine, "/")+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK && method != http.MethodDelete {
			t.Fatalf("%s %s: status %d", method, path, resp.StatusCode)
		}
	}
	alias := fmt.Sprintf("check-%d", time.Now().UnixNano())
	physical := alias + "-1"
	t.Cleanup(func() {
		call(http.MethodDelete, "/"+physical, "")
		call(http.MethodDelete, "/"+alias, "")
	})
	upstream := song(t, testkit.SongConfig{}, "S1")
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nindex: {url: %q}\nrepositories: [{code: a, type: song, indexName: %q, url: %q}]",
		t.TempDir(), engine, alias, upstream.URL()))
	look := func(want string) {
		t.Helper()
		report := check.Run(t.Context(), cfg, check.Options{})
		wantLines(t, of(report, "index"), "ok: * is Elasticsearch 8.*, cluster *", "ok: the cluster is *")
		wantLines(t, of(report, "index "+alias), want)
	}
	look("ok: will be made")
	call(http.MethodPut, "/"+physical, fmt.Sprintf(`{"aliases":{%q:{}},"settings":{"number_of_replicas":0}}`, alias))
	look("ok: the alias is there and stands for " + physical)
	call(http.MethodDelete, "/"+physical, "")
	call(http.MethodPut, "/"+alias, `{"settings":{"number_of_replicas":0}}`)
	look("fail: an index has this name, which tutti needs for an alias -> choose another indexName, *")
}
