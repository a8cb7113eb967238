//go:build services

package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tutti/internal/tools/testkit"
)

const (
	// arrangerVariable is the folder node_modules with Arranger's server (deploy/local/arranger); none by default: an Arranger is no part of CI.
	arrangerVariable = "TUTTI_TEST_ARRANGER"
	// arrangerStart is how long Arranger may take to start.
	arrangerStart = time.Minute
)

// TestMoveFromArrangerItself: what deploy/docs/migrating.md says about Arranger in its table, tried with its server on an Elasticsearch.
func TestMoveFromArrangerItself(t *testing.T) {
	modules := os.Getenv(arrangerVariable)
	if modules == "" {
		t.Skipf("%s is not set: eval \"$(deploy/local/arranger | sed 's/^/export /')\"", arrangerVariable)
	}
	engine := os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL")
	index := fmt.Sprintf("move-%d", time.Now().UnixNano())
	send := func(method, url, contentType, body string) answer {
		t.Helper()
		req, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // the end of the test stops the server
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		res, err := oneRequest().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{status: res.StatusCode, raw: raw}
	}
	const kind = "application/json"
	if a := send(http.MethodPut, engine+"/"+index, kind, `{"settings":{"number_of_replicas":0},"mappings":`+moveMapping+`}`); a.status != http.StatusOK {
		t.Fatalf("%s", a.raw)
	}
	t.Cleanup(func() { send(http.MethodDelete, engine+"/"+index, kind, "") })
	bulk := "{\"index\":{}}\n" + strings.Join(moveDocuments(), "\n{\"index\":{}}\n") + "\n"
	if a := send(http.MethodPost, engine+"/"+index+"/_bulk?refresh=true", "application/x-ndjson", bulk); a.get("errors").Bool() {
		t.Fatalf("%s", a.raw)
	}
	url := startArranger(t, modules, engine, map[string]string{
		"base.json": fmt.Sprintf(`{"documentType":"a","index":%q}`, index), "extended.json": `{"extended":[]}`,
		"table.json": `{"table":{"columns":[]}}`, "facets.json": `{"facets":{"aggregations":[]}}`,
	})
	moved(t, func(body string) answer { return send(http.MethodPost, url+"/graphql", kind, body) }, func(c moveCase) string { return c.arranger })
}

// oneRequest returns a client that leaves no connection open.
func oneRequest() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// startArranger starts Arranger's server with files of configuration, until the end of the test, and returns its URL.
func startArranger(t *testing.T, modules, engine string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	files["../run.mjs"] = `await (await import("@overture-stack/arranger-server/dist/app.js")).default(process.cwd())`
	if err := os.Mkdir(filepath.Join(dir, "configs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, "configs", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, port, _ := net.SplitHostPort(testkit.NewAddress(t))
	node := exec.CommandContext(t.Context(), "node", "run.mjs")
	// Of OpenSearch's client: that of Elasticsearch asks for what the distribution from packages lacks (GET /).
	node.Dir, node.Env = dir, append(os.Environ(), "ES_HOST="+engine, "SEARCH_CLIENT_TYPE=opensearch", "CONFIG_PATH=./configs", "PORT="+port)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = node.Process.Kill()
		_ = node.Wait() // it was killed
	})
	url := "http://127.0.0.1:" + port
	eventually(t, arrangerStart, func() (bool, string) {
		res, err := oneRequest().Get(url + "/ping") //nolint:noctx // as above
		if err != nil {
			return false, err.Error()
		}
		return res.StatusCode == http.StatusOK, res.Status + fmt.Sprint(res.Body.Close())
	})
	return url
}
