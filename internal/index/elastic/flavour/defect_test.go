package flavour_test

import (
	"strings"
	"testing"

	"tutti/internal/index/elastic/flavour"
)

// TestDefect: the versions with a known defect are those, and the first without it is named; of several nodes one is enough.
func TestDefect(t *testing.T) {
	for text, known := range map[string]bool{
		"9.4.9": false, "9.5.0": true, "9.5.2": true, "9.5.2-SNAPSHOT": true, "9.5.3": false, "9.6.0": false, "8.19.2": false,
		"9.4.9 9.6.0": false, "9.4.9 9.6.0 9.5.1": true,
	} {
		var versions []flavour.Version
		for one := range strings.FieldsSeq(text) {
			version, ok := flavour.ParseVersion(one)
			if !ok {
				t.Fatal(one)
			}
			versions = append(versions, version)
		}
		if defect := flavour.Defect(flavour.Elasticsearch, versions...); known != strings.HasSuffix(defect, "; upgrade it to 9.5.3 or later") {
			t.Errorf("%s: %q", text, defect)
		}
		if defect := flavour.Defect(flavour.OpenSearch, versions...); defect != "" {
			t.Errorf("OpenSearch %s: %q", text, defect)
		}
	}
}

// TestUnsuitable: only an index that stores documents as they are is used.
func TestUnsuitable(t *testing.T) {
	no := false
	for name, test := range map[string]struct {
		settings map[string]any
		source   flavour.Source
		want     string
	}{
		"defaults":    {nil, flavour.Source{}, ""},
		"standard":    {map[string]any{"index.mode": "standard", "index.mapping.source.mode": "stored"}, flavour.Source{Mode: "stored"}, ""},
		"time series": {map[string]any{"index.mode": "time_series"}, flavour.Source{}, "index.mode is time_series, in which the engine chooses the ids"},
		"logs":        {map[string]any{"index.mode": "LogsDB"}, flavour.Source{}, "index.mode is logsdb, so that documents are rebuilt from columns: "},
		"logs, stored": {
			map[string]any{"index.mode": "logsdb", "index.mapping.source.mode": "stored"}, flavour.Source{}, "index.mode is logsdb, which refuses documents without @timestamp",
		},
		"columnar":           {map[string]any{"index.mode": "columnar"}, flavour.Source{}, "index.mode is columnar, "},
		"synthetic":          {map[string]any{"index.mapping.source.mode": "synthetic"}, flavour.Source{}, "its _source is synthetic, "},
		"synthetic, mapping": {nil, flavour.Source{Mode: "synthetic"}, "its _source is synthetic, "},
		"derived":            {map[string]any{"index.derived_source.enabled": "true"}, flavour.Source{}, "index.derived_source.enabled is true, "},
		"not derived":        {map[string]any{"index.derived_source.enabled": false}, flavour.Source{}, ""},
		"no source":          {nil, flavour.Source{Enabled: &no}, "its _source is disabled, "},
	} {
		got := flavour.StorageOf(test.settings, test.source).Unsuitable()
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
