package flavour_test

import (
	"testing"

	"tutti/internal/index/elastic/flavour"
)

// TestLimitsArrayObjects: only engines that are known to have the setting are sent it, because the others refuse an index with it.
func TestLimitsArrayObjects(t *testing.T) {
	for _, tt := range []struct {
		product flavour.Product
		version flavour.Version
		want    bool
	}{
		{flavour.Elasticsearch, flavour.Version{}, false},
		{flavour.Elasticsearch, flavour.Version{Major: 8, Minor: 19, Patch: 21}, false},
		{flavour.Elasticsearch, flavour.Version{Major: 9, Minor: 2}, false},
		{flavour.Elasticsearch, flavour.Version{Major: 9, Minor: 5, Patch: 3}, true},
		{flavour.Elasticsearch, flavour.Version{Major: 10}, true},
		{flavour.OpenSearch, flavour.Version{Major: 12}, false},
	} {
		engine, _, _ := flavour.Of(tt.product, tt.version)
		if got := engine.LimitsArrayObjects(); got != tt.want {
			t.Errorf("%s: %v", engine, got)
		}
	}
}
