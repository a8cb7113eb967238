package flavour_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index/elastic/flavour"
)

// TestPrivilegesOfTheGuide: the statements of the guide, and the user that deploy/local/engine/start makes for the suites, have the privileges
// that messages name.
func TestPrivilegesOfTheGuide(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "deploy")
	guide, err := os.ReadFile(filepath.Join(root, "docs", "engines.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(root, "local", "engine", "start"))
	if err != nil {
		t.Fatal(err)
	}
	role := func(name string, into any) {
		t.Helper()
		block := regexp.MustCompile("(?s)```http\nPUT " + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(guide)
		if block == nil {
			t.Fatalf("the guide has no %s", name)
		}
		if err := json.Unmarshal(block[1], into); err != nil {
			t.Fatal(err)
		}
	}
	var elasticsearch struct {
		Cluster []string
		Indices []struct{ Names, Privileges []string }
	}
	role("/_security/role/tutti", &elasticsearch)
	var openSearch struct {
		Cluster []string `json:"cluster_permissions"`
		Indices []struct {
			Names      []string `json:"index_patterns"`
			Privileges []string `json:"allowed_actions"`
		} `json:"index_permissions"`
	}
	role("/_plugins/_security/api/roles/tutti", &openSearch)
	for _, tt := range []struct {
		product               flavour.Product
		cluster, names, index []string
	}{
		{flavour.Elasticsearch, elasticsearch.Cluster, elasticsearch.Indices[0].Names, elasticsearch.Indices[0].Privileges},
		{flavour.OpenSearch, openSearch.Cluster, openSearch.Indices[0].Names, openSearch.Indices[0].Privileges},
	} {
		engine, _, ok := flavour.Of(tt.product, flavour.Version{})
		if !ok {
			t.Fatal(tt.product)
		}
		p := engine.Privileges
		if diff := cmp.Diff([][]string{p.Cluster, {"song", "song-*"}, p.Index}, [][]string{tt.cluster, tt.names, tt.index}); diff != "" {
			t.Errorf("%s: the guide grants other privileges: %s", tt.product, diff)
		}
		for _, list := range [][]string{p.Cluster, p.Index, p.Read, {p.Template}} {
			if !strings.Contains(string(script), ": ["+strings.Join(list, ", ")+"]") {
				t.Errorf("%s: no user of the script has exactly %q", tt.product, list)
			}
		}
		for _, name := range slices.Concat(p.Read, []string{p.Template}) {
			if !strings.Contains(string(guide), "`"+name+"`") {
				t.Errorf("%s: the guide does not name %s", tt.product, name)
			}
		}
	}
}
