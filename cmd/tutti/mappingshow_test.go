package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestMappingShow: what is printed has tutti's own fields, and what the mapping file and newFields add and override, with the settings of the
// search engine; of one that does not answer it is said.
func TestMappingShow(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s was sent", r.Method, r.URL.Path)
		}
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		_, _ = fmt.Fprint(w, `{"name":"n","cluster_name":"c","version":{"number":"8.19.2","build_flavor":"default"},"tagline":"You Know, for Search"}`)
	}))
	t.Cleanup(engine.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tt := range map[string]struct {
		index, said string
		want        map[string]string
	}{
		"engine": {engine.URL, "", map[string]string{"settings.*number_of_shards": "3", "settings.*nested_fields*limit": "200"}},
		"gone":   {gone.URL, "tutti: as for Elasticsearch: ", map[string]string{"settings.*number_of_shards": "3"}},
		"none":   {"", "", map[string]string{"settings": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, cfg := filepath.Join(dir, "mapping.json"), filepath.Join(dir, "tutti.yaml")
			for path, text := range map[string]string{
				file: `{"mappings":{"properties":{"studyId":{"type":"keyword","normalizer":"lowercase"},"age":{"type":"long"}}}}`,
				cfg: fmt.Sprintf("dataDir: %q\nindex: {url: %q, shards: 3}\nrepositories:\n  - {code: a, type: song, url: 'http://127.0.0.1:9', indexName: a, mappingFile: %q, newFields: ignore}\n",
					filepath.Join(dir, "data"), tt.index, file),
			} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, stdout, stderr := call(t, "mapping", "show", "a", "--config", cfg)
			if code != 0 || !strings.HasPrefix(stderr, tt.said) || tt.said == "" && stderr != "" {
				t.Fatalf("code %d, stderr %q", code, stderr)
			}
			own := map[string]string{
				"mappings.properties.studyId.normalizer": "lowercase", "mappings.properties.age.type": "long", "mappings.properties.samples.type": "nested",
				"mappings.properties.repositories.type": "nested", "mappings.dynamic": "false", "mappings._meta.tutti.newFields": "ignore",
			}
			for _, members := range []map[string]string{own, tt.want} {
				for path, want := range members {
					if got := gjson.Get(stdout, path).String(); got != want {
						t.Errorf("%s is %q, want %q in\n%s", path, got, want, stdout)
					}
				}
			}
		})
	}
}

// TestMappingPlanNotes: the plan says what the engine refuses or could not be asked, which types a rebuild changes, what is not used and what is
// only a warning.
func TestMappingPlanNotes(t *testing.T) {
	t.Parallel()
	url := server(t, http.StatusOK, `{"repository":"a","alias":"a","physicalIndex":"a-1","difference":true,"differences":[],"settings":[],"next":["do this"],`+
		`"refused":"no handler for b.age","untried":true,"retyped":[{"field":"n","live":"long","wanted":"double"}],"unused":["priority","version"],"warnings":["dynamic guesses"]}`)
	code, stdout, stderr := call(t, "mapping", "plan", "a", "--server", url)
	if code != 2 || stderr != "" { // something is to be done
		t.Fatalf("code %d, stderr %q", code, stderr)
	}
	for _, want := range []string{
		"refused: no handler for b.age\n", "not tried: the search engine does not let this user try the mapping; only the first creation of an index will tell\n",
		"a rebuild changes the type of n from long to double\n", "not used: priority, version\n", "warning: dynamic guesses\n", "\nNext:\n  do this\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}
