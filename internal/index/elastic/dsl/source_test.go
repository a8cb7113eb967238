package dsl_test

import (
	"testing"

	"tutti/internal/index"
	"tutti/internal/index/elastic/dsl"
	"tutti/internal/index/elastic/flavour"
)

// TestSourceWithVectors: vectors are requested from an engine that leaves them out, which another one would refuse.
func TestSourceWithVectors(t *testing.T) {
	part := index.Source{Paths: []string{"in.v", "in.k", "n"}}
	for _, tt := range []struct {
		product     flavour.Product
		version     string
		whole, part string
	}{
		{flavour.Elasticsearch, "", "", `,"_source":{"includes":["in","n"]}`},
		{flavour.Elasticsearch, "9.1.4", "", `,"_source":{"includes":["in","n"]}`},
		{flavour.Elasticsearch, "9.2.0", `,"_source":{"exclude_vectors":false}`, `,"_source":{"includes":["in","n"],"exclude_vectors":false}`},
		{flavour.OpenSearch, "9.2.0", "", `,"_source":{"includes":["in","n"]}`},
	} {
		version, _ := flavour.ParseVersion(tt.version)
		engine, why, ok := flavour.Of(tt.product, version)
		if !ok {
			t.Fatal(why)
		}
		for want, source := range map[string]index.Source{tt.part: part, tt.whole: {}, `,"_source":false`: {None: true}} {
			if got := string(dsl.AppendSource(nil, source, engine)); got != want {
				t.Errorf("%s: %+v is %s, want %s", engine, source, got, want)
			}
		}
	}
}
