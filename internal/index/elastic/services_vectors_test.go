//go:build services

package elastic_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

// TestVectors: documents with vectors are returned whole by every way of reading: as they were written from an index that tutti makes, and with
// the same values from one whose settings leave vectors out.
func TestVectors(t *testing.T) {
	if !engineOf(t).OmitsVectors() {
		t.Skip("the engine keeps vectors like all other values")
	}
	const fields = `"properties":{"v":{"type":"dense_vector","dims":2},"in":{"properties":{"v":{"type":"dense_vector","dims":2},"k":{"type":"keyword"}}},` +
		`"n":{"type":"double"},"k":{"type":"keyword"}}`
	const written = `{"v":[1,2.50],"in":{"v":[0.5,1],"list":["a"]},"n":0.1234567890123456789,"k":"x"}`
	for name, tt := range map[string]struct{ mapping, want string }{
		"made by tutti": {`{` + fields + `}`, written},
		"left out":      {`{"settings":{"index.mapping.exclude_source_vectors":"true"},"mappings":{` + fields + `}}`, `{"v":[1,2.5],"in":{"v":[0.5,1],"list":["a"]},"n":0.12345678901234568,"k":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			x := cluster(t)
			alias := fresh(t)
			ensure(t, x, index.Spec{Alias: alias, Mapping: []byte(tt.mapping)})
			if r := write(t, x, alias, put("a", 1, written)); r[0].Outcome != core.OutcomeIndexed {
				t.Fatalf("%+v", r)
			}
			if err := x.Refresh(t.Context(), alias); err != nil {
				t.Fatal(err)
			}
			decode := func(text string) (value any) {
				if err := json.Unmarshal([]byte(text), &value); err != nil {
					t.Errorf("%s: %v", text, err)
				}
				return value
			}
			equal := func(reader string, got []byte, want string) {
				t.Helper()
				if want == written && string(got) != want {
					t.Errorf("%s: got %s, want %s", reader, got, want)
				} else if diff := cmp.Diff(decode(want), decode(string(got))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", reader, diff)
				}
			}
			doc, _, err := x.Get(t.Context(), alias, "a")
			if err != nil {
				t.Fatal(err)
			}
			equal("Get", doc.Source, tt.want)
			err = x.GetAll(t.Context(), alias, []string{"a"}, func(_ int, doc core.StoredDocument, _ bool) { equal("GetAll", doc.Source, tt.want) })
			if err != nil {
				t.Fatal(err)
			}
			err = x.Stream(t.Context(), alias, index.StreamRequest{}, func(hits []index.Hit) error {
				equal("Stream "+strconv.Itoa(len(hits)), hits[0].Source, tt.want)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			top := index.Facet{Field: query.Field{Path: "k", Type: "keyword"}, Buckets: &index.Buckets{Max: 5, TopHits: 1}}
			got, err := x.Search(t.Context(), alias, []index.SearchRequest{{Hits: &index.HitsRequest{Size: 1}, Facets: []index.Facet{top}}})
			if err != nil {
				t.Fatal(err)
			}
			equal("Search", got[0].Hits[0].Source, tt.want)
			equal("top hits", got[0].Facets[0].Buckets[0].TopHits[0].Source, tt.want)
			part := index.HitsRequest{Size: 1, Source: index.Source{Paths: []string{"in.v"}}}
			if got, err = x.Search(t.Context(), alias, []index.SearchRequest{{Hits: &part}}); err != nil {
				t.Fatal(err)
			}
			equal("a part", []byte(gjson.GetBytes(got[0].Hits[0].Source, "in").Raw), gjson.Get(tt.want, "in").Raw)
		})
	}
}
