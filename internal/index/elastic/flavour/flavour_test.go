package flavour_test

import (
	"testing"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
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
		settings := engine.LimitSettings(mapping.DefaultLimits())
		if objects, parents := settings[mapping.SettingArrayObjects], settings[mapping.SettingNestedParents]; (objects == 100_000) != tt.objects ||
			(parents == 200) != tt.parents || len(settings) < 3 {
			t.Errorf("%s: %v", engine, settings)
		}
	}
}

// TestFaulty: what the table of types says about versions of an engine.
func TestFaulty(t *testing.T) {
	for _, tt := range []struct {
		product   flavour.Product
		version   flavour.Version
		fieldType string
		kind      fieldtype.FaultKind
		want      bool
	}{
		{flavour.OpenSearch, flavour.Version{Major: 2, Minor: 14, Patch: 9}, "wildcard", fieldtype.Absent, true},
		{flavour.OpenSearch, flavour.Version{Major: 2, Minor: 15}, "wildcard", fieldtype.Absent, false},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "wildcard", fieldtype.Absent, false},
		{flavour.OpenSearch, flavour.Version{}, "wildcard", fieldtype.Absent, true},
		{flavour.Elasticsearch, flavour.Version{Major: 7, Minor: 17}, "wildcard", fieldtype.Absent, false},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "unsigned_long", fieldtype.UnscoredSort, true},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "scaled_float", fieldtype.UnscoredSort, true},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "double", fieldtype.UnscoredSort, false},
		{flavour.Elasticsearch, flavour.Version{Major: 8, Minor: 19}, "scaled_float", fieldtype.UnscoredSort, false},
		{flavour.OpenSearch, flavour.Version{Major: 2, Minor: 19}, "constant_keyword", fieldtype.MisnamedFacet, true},
		{flavour.Elasticsearch, flavour.Version{Major: 9}, "constant_keyword", fieldtype.MisnamedFacet, false},
		{flavour.OpenSearch, flavour.Version{Major: 2, Minor: 15}, "wildcard", fieldtype.Miscounted, true},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "wildcard", fieldtype.Miscounted, true},
		{flavour.Elasticsearch, flavour.Version{Major: 8, Minor: 19}, "wildcard", fieldtype.Miscounted, false},
		{flavour.OpenSearch, flavour.Version{Major: 3, Minor: 8}, "keyword", fieldtype.Miscounted, false},
		{flavour.OpenSearch, flavour.Version{Major: 3}, "unheard_of", fieldtype.Absent, false},
	} {
		engine, _, _ := flavour.Of(tt.product, tt.version)
		if got := engine.Faulty(tt.fieldType, tt.kind); got != tt.want {
			t.Errorf("%s does wrong with %s (%d): %v", engine, tt.fieldType, tt.kind, got)
		}
	}
}
