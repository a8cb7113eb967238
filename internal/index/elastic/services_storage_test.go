//go:build services

package elastic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/elastic/flavour"
)

// TestStorageModes: an index whose documents are not what was written is refused with what the engine does to them, and only such an index;
// a setting that this engine does not know creates none.
func TestStorageModes(t *testing.T) {
	engine := fmt.Sprintf("%s %d", engineOf(t).Product, engineOf(t).Version.Major)
	const written = `{"z":1,"tags":["b","a","b"],"numbers":[3,1,2],"one":["x"],"null":null,"@timestamp":"2026-01-02T03:04:05Z"}`
	const all, modes = "Elasticsearch 7, Elasticsearch 8, Elasticsearch 9, OpenSearch 2, OpenSearch 3", "Elasticsearch 8, Elasticsearch 9"
	const fields = `"properties":{"tags":{"type":"keyword"},"numbers":{"type":"long"},"one":{"type":"keyword"},"@timestamp":{"type":"date"}}`
	for name, tt := range map[string]struct {
		settings, source string
		engines          string // those that know the setting; all others refuse to make such an index
		why              string // "" for an index that is used
		// stored is the document that comes back, "" for none; refused is the reason why it is not taken.
		stored, refused string
	}{
		"standard": {"", "", all, "", written, ""},
		"lookup":   {`"index.mode":"lookup"`, "", modes, "", written, ""},
		"logsdb": {
			`"index.mode":"logsdb"`, "", modes, "index.mode is logsdb, so that documents are rebuilt",
			`{"z":1,"tags":["b","a","b"],"numbers":[3,1,2],"one":["x"],"@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
		"logsdb with a stored source": {
			`"index.mode":"logsdb","index.mapping.source.mode":"stored"`, "", modes, "index.mode is logsdb, which refuses documents without @timestamp", written, "",
		},
		"columnar": {
			`"index.mode":"columnar"`, "", "Elasticsearch 9.5", "index.mode is columnar, so that documents are rebuilt",
			`{"z":1,"tags":["b","a","b"],"numbers":[3,1,2],"one":"x","@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
		"time series": {
			`"index.mode":"time_series","index.routing_path":"dim"`, `"dynamic_templates":[{"d":{"match":"dim","mapping":{"type":"keyword","time_series_dimension":true}}}]`, modes,
			"index.mode is time_series, in which the engine chooses the ids", "", "Error extracting routing",
		},
		"synthetic": {
			`"index.mapping.source.mode":"synthetic"`, "", modes, "its _source is synthetic, so that documents are rebuilt",
			`{"z":1,"tags":["a","b"],"numbers":[1,2,3],"one":"x","@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
		"synthetic that keeps lists": {
			`"index.mapping.source.mode":"synthetic","index.mapping.synthetic_source_keep":"arrays"`, "", modes, "its _source is synthetic, so that documents are rebuilt",
			`{"z":1,"tags":["b","a","b"],"numbers":[3,1,2],"one":["x"],"@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
		"synthetic by the mapping": {
			"", `"_source":{"mode":"synthetic"}`, modes, "its _source is synthetic, so that documents are rebuilt",
			`{"z":1,"tags":["a","b"],"numbers":[1,2,3],"one":"x","@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
		"disabled":                {`"index.mapping.source.mode":"disabled"`, "", modes, "its _source is disabled", "", ""},
		"disabled by the mapping": {"", `"_source":{"enabled":false}`, all, "its _source is disabled", "", ""},
		"derived": {
			`"index.derived_source.enabled":true`, "", "OpenSearch 3", "index.derived_source.enabled is true, so that documents are rebuilt",
			`{"z":1,"tags":["a","b"],"numbers":[1,2,3],"one":"x","@timestamp":"2026-01-02T03:04:05.000Z"}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, alias := cluster(t), fresh(t)
			mappings := strings.TrimPrefix(tt.source+","+fields, ",")
			made := admin(t, http.MethodPut, "/"+alias+"-1", `{"aliases":{"`+alias+`":{"is_write_index":true}},"settings":{`+tt.settings+`},"mappings":{`+mappings+`}}`)
			if name == "synthetic by the mapping" && engine == "Elasticsearch 9" { // which ignores it there
				tt.why, tt.stored = "", written
			}
			known := strings.Contains(tt.engines, engine)
			if tt.engines == "Elasticsearch 9.5" {
				known = engineOf(t).Product == flavour.Elasticsearch && !engineOf(t).Version.Less(flavour.Version{Major: 9, Minor: 5})
			}
			if known != strings.Contains(made, `"acknowledged":true`) {
				t.Fatalf("%s: %s", engine, made)
			} else if !known {
				return
			}
			err := x.CheckStorage(t.Context(), alias)
			if tt.why == "" && err != nil || tt.why != "" && (!errors.Is(err, core.ErrIndexUnsuitable) || !strings.Contains(core.MessageOf(err), tt.why)) {
				t.Errorf("%v, want %q", err, tt.why)
			}
			answer := admin(t, http.MethodPut, "/"+alias+"-1/_doc/1?refresh=true&version=5&version_type=external_gte", written)
			if strings.Contains(tt.why, "logsdb") {
				if none := admin(t, http.MethodPut, "/"+alias+"-1/_doc/2", `{"z":1}`); !strings.Contains(none, "timestamp field [@timestamp] is missing") {
					t.Errorf("a document without @timestamp: %s", none)
				}
			}
			if tt.refused != "" {
				if !strings.Contains(answer, tt.refused) {
					t.Errorf("the write: %s", answer)
				}
				return
			}
			read := func(text string, into any) {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			var stored struct {
				Version int64 `json:"_version"`
				Source  any   `json:"_source"`
			}
			read(admin(t, http.MethodGet, "/"+alias+"-1/_doc/1", ""), &stored)
			var want any
			if tt.stored != "" {
				read(tt.stored, &want)
			}
			if diff := cmp.Diff(want, stored.Source); diff != "" || stored.Version != 5 {
				t.Errorf("version %d, stored (-want +got):\n%s", stored.Version, diff)
			}
		})
	}
}
