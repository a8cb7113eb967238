//go:build services

package compare_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
)

// TestUpgradeOnEngine: of an index of a search engine as an earlier release has made it, the type, the limit and the default display name that
// change are listed, each with when, and the index stays as it is.
func TestUpgradeOnEngine(t *testing.T) {
	url := os.Getenv("TUTTI_TEST_ELASTICSEARCH_URL")
	if url == "" {
		t.Fatal("TUTTI_TEST_ELASTICSEARCH_URL is not set; deploy/local/engine/start prints it")
	}
	alias := fmt.Sprintf("tutti-upgrade-%016x", rand.Uint64())
	physical := url + "/" + alias + "-1"
	const mapped = `{"age":{"type":"long"},"tumour":{"properties":{"sample":{"properties":{"id":{"type":"keyword"}}}}}}`
	send(t, http.MethodPut, physical, `{"settings":{"index.mapping.total_fields.limit":50,"number_of_replicas":0},"mappings":{"properties":`+mapped+`},"aliases":{"`+alias+`":{}}}`)
	t.Cleanup(func() { send(t, http.MethodDelete, physical, "") })
	untouched := send(t, http.MethodGet, physical, "")

	dir := t.TempDir()
	for name, content := range map[string]string{
		"catalogues/lab/base.json": `{"documentType":"analysis","esIndex":"` + alias + `"}`,
		"mapping.json":             `{"properties":{"age":{"type":"keyword"}}}`,
		"tutti.yaml": `
dataDir: ` + dir + `
index: {url: ` + url + `, replicas: 0}
repositories: [{code: local, type: local, indexName: ` + alias + `, mappingFile: ` + filepath.Join(dir, "mapping.json") + `}]
catalogues: {dir: ` + filepath.Join(dir, "catalogues") + `}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(filepath.Join(dir, "tutti.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := before{served{alias, `{"properties":` + mapped + `}`}, []core.CatalogueField{
		{Name: "age", DisplayName: "Age", Type: "long"},
		{Name: "tumour", DisplayName: "Tumour", Type: "object"},
		{Name: "tumour.sample", DisplayName: "Tumour Sample", Type: "object"},
		{Name: "tumour.sample.id", DisplayName: "Sample Id", Type: "keyword"},
	}}
	p := compare.Upgrade(t.Context(), cfg, "dev", server, nil)
	for _, want := range []compare.UpgradeChange{
		{Subject: "catalogue lab", When: compare.ByStart, Change: `the field tumour.sample.id has the display name "Tumour Sample Id" instead of "Sample Id"`},
		{Subject: "index of local", When: compare.ByRebuild, Change: "the field age becomes keyword instead of long"},
		{Subject: "index of local", When: compare.ByRebuild, Change: "index.mapping.total_fields.limit becomes 5000 instead of 50"},
	} {
		if !slices.Contains(p.Changes, want) {
			t.Errorf("no %+v in %+v", want, p.Changes)
		}
	}
	if !p.Difference || len(p.Unread) > 0 {
		t.Errorf("not compared: %q", p.Unread)
	}
	if after := send(t, http.MethodGet, physical, ""); after != untouched {
		t.Errorf("the index is %s, was %s", after, untouched)
	}
}

// send returns the answer of an engine.
func send(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // also after the test's context
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", res.StatusCode, answer, err)
	}
	return string(answer)
}
