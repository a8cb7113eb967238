package flavour_test

import (
	"testing"

	"tutti/internal/index/elastic/flavour"
)

// TestLimitSettings: only engines that are known to have a setting are sent it, because the others refuse an index with it.
func TestLimitSettings(t *testing.T) {
	for _, tt := range []struct {
		product          flavour.Product
		version          flavour.Version
		objects, parents bool
	}{
		{flavour.Elasticsearch, flavour.Version{}, false, false},
		{flavour.Elasticsearch, flavour.Version{Major: 8, Minor: 19, Patch: 21}, false, false},
		{flavour.Elasticsearch, flavour.Version{Major: 9, Minor: 2}, false, false},
		{flavour.Elasticsearch, flavour.Version{Major: 9, Minor: 3}, false, true},
		{flavour.Elasticsearch, flavour.Version{Major: 9, Minor: 5, Patch: 3}, true, true},
		{flavour.Elasticsearch, flavour.Version{Major: 10}, true, true},
		{flavour.OpenSearch, flavour.Version{Major: 12}, false, false},
	} {
		engine, _, _ := flavour.Of(tt.product, tt.version)
		if objects, parents := engine.LimitsArrayObjects(), engine.LimitsNestedParents(); objects != tt.objects || parents != tt.parents {
			t.Errorf("%s: %v, %v", engine, objects, parents)
		}
	}
}
