package elastic_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/index"
)

// TestReadHits: documents are read where they stand, and kept as they are where nothing was made of them.
func TestReadHits(t *testing.T) {
	hits := func(all ...string) answer { return found(`"hits":{"hits":[` + strings.Join(all, ",") + `]}`) }
	first, last := `{"_id":"first","_source": {"v":"a}"} ,"sort":[1]}`, `{"_id":"last","_source":{"v":"z"},"sort":[3]}`
	keptFirst := index.Hit{ID: "first", Source: []byte("kept"), Read: true}
	keptLast := index.Hit{ID: "last", Source: []byte("kept"), Read: true}
	for _, c := range []struct {
		name, hit string
		end       func(data []byte, at int) (kept []byte, end int)
		asked     []string
		want      index.Hit
	}{
		{"read", `{"_id":"b","_source":{"v":1}}`, nil, []string{"first", "b", "last"}, index.Hit{ID: "b", Source: []byte("kept"), Read: true}},
		{"wanted as it is", `{"_id":"b","_source":{"v":1}}`, func(_ []byte, at int) ([]byte, int) { return nil, at }, []string{"first", "b", "last"}, index.Hit{ID: "b", Source: []byte(`{"v":1}`)}},
		{"read in vain", `{"_id":"b","_source":{"v":1}}`, func(_ []byte, at int) ([]byte, int) { return []byte("x"), at }, []string{"first", "b", "last"}, index.Hit{ID: "b", Source: []byte(`{"v":1}`)}},
		{"read too far", `{"_id":"b","_source":{"v":1}}`, func(data []byte, _ int) ([]byte, int) { return []byte("x"), len(data) + 1 }, []string{"first", "b", "last"}, index.Hit{ID: "b", Source: []byte(`{"v":1}`)}},
		{"of an id that is not known yet", `{"_source":{"v":1},"_id":"b"}`, nil, []string{"first", "last"}, index.Hit{ID: "b", Source: []byte(`{"v":1}`)}},
		{"none", `{"_id":"b"}`, nil, []string{"first", "last"}, index.Hit{ID: "b", Source: []byte(`{}`)}},
		{"no object", `{"_id":"b","_source":null}`, nil, []string{"first", "last"}, index.Hit{ID: "b", Source: []byte(`null`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, _ := play(t, hits(first, c.hit, last))
			var asked []string
			read := func(id string, data []byte, at int) ([]byte, int) {
				asked = append(asked, id)
				if id == "b" && c.end != nil {
					return c.end(data, at)
				}
				return []byte("kept"), at + bytes.Index(data[at:], []byte(`}`)) + map[string]int{"first": len(`"}`)}[id] + 1
			}
			got, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &index.HitsRequest{Size: 3, Read: read}}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]index.Hit{keptFirst, c.want, keptLast}, got[0].Hits); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReadHitsAreWeighed: what is made of documents says nothing about how large they are.
func TestReadHitsAreWeighed(t *testing.T) {
	page := func(bytes int) answer {
		return found(fmt.Sprintf(`"hits":{"hits":[{"_id":"1","_source":{"k":%q}}]}`, strings.Repeat("x", bytes)))
	}
	for bytes, part := range map[int]bool{20_000: true, 20: false} {
		x, s := play(t, page(bytes), page(bytes))
		read := func(_ string, read []byte, _ int) ([]byte, int) {
			return []byte("{}"), strings.Index(string(read), `"}}]`) + len(`"}`)
		}
		for range 2 {
			req := index.HitsRequest{Size: 1, Source: index.Source{Paths: []string{"k"}}, Read: read}
			if _, err := x.Search(t.Context(), "a", []index.SearchRequest{{Hits: &req}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Contains(s.asked[1], `"_source"`); got != part {
			t.Errorf("%d bytes: asked in part is %t", bytes, got)
		}
	}
}
