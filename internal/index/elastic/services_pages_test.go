//go:build services

package elastic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
)

// walk returns the ids of all documents by pages of a size, in the order of the pages; between is called after each page.
func walk(t *testing.T, x *elastic.Index, alias string, size int, between func()) []string {
	t.Helper()
	var ids []string
	h := &index.HitsRequest{Size: size, Sort: []index.Sort{{Field: field("_id", "keyword")}}, Source: index.Source{None: true}}
	for len(ids) < 1000 {
		hits := subsearch(t, x, alias, index.SearchRequest{Hits: h})[0].Hits
		ids = append(ids, idsOf(hits)...)
		if len(hits) < size {
			break
		}
		h.After = hits[len(hits)-1].Sort
		between()
	}
	return ids
}

// foreign makes an index that holds n documents without their ids, and is removed when the test ends.
func foreign(t *testing.T, name string, shards, n int) {
	t.Helper()
	admin(t, http.MethodPut, "/"+name, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0},"mappings":{"properties":{"k":{"type":"keyword"}}}}`, shards))
	t.Cleanup(func() { admin(t, http.MethodDelete, "/"+name, "") })
	var bulk strings.Builder
	for i := range n {
		fmt.Fprintf(&bulk, `{"index":{"_id":"d%02d"}}`+"\n{}\n", i)
	}
	if answer := admin(t, http.MethodPost, "/"+name+"/_bulk?refresh=true", bulk.String()); !strings.Contains(answer, `"errors":false`) {
		t.Fatal(answer)
	}
}

// TestPagesOfEqualDocuments: documents of several indices may have the same ids and sequence numbers, those of a shrunk index the
// same sequence numbers within one shard.
func TestPagesOfEqualDocuments(t *testing.T) {
	x, alias := cluster(t), fresh(t)
	one, two, shrunk := alias+"-1", alias+"-2", alias+"-shrunk"
	foreign(t, one, 1, 12)
	foreign(t, two, 4, 12)
	admin(t, http.MethodPost, "/_aliases", fmt.Sprintf(`{"actions":[{"add":{"indices":[%q,%q],"alias":%q}}]}`, one, two, alias))
	admin(t, http.MethodPut, "/"+two+"/_settings", `{"index.blocks.write":true}`)
	answer := admin(t, http.MethodPost, "/"+two+"/_shrink/"+shrunk+"?wait_for_active_shards=1", `{"settings":{"index.number_of_shards":1,"index.number_of_replicas":0}}`)
	t.Cleanup(func() { admin(t, http.MethodDelete, "/"+shrunk, "") })
	if !strings.Contains(answer, `"shards_acknowledged":true`) {
		t.Fatal(answer)
	}
	for name, times := range map[string]int{one: 1, two: 1, shrunk: 1, alias: 2} {
		for _, size := range []int{1, 2, 5} {
			counts := map[string]int{}
			for _, id := range walk(t, x, name, size, func() {}) {
				counts[id]++
			}
			for i := range 12 {
				if id := fmt.Sprintf("d%02d", i); counts[id] != times {
					t.Errorf("pages of %d of %s: %s is there %d times, want %d", size, name, id, counts[id], times)
				}
			}
		}
	}
}

// TestPagesWhileDocumentsAreWritten: a document that is written again between pages hides no other.
func TestPagesWhileDocumentsAreWritten(t *testing.T) {
	for _, shards := range []int{1, 3} {
		x, alias := cluster(t), fresh(t)
		foreign(t, alias, shards, 20)
		next := 0
		found := walk(t, x, alias, 3, func() {
			if next < 20 {
				admin(t, http.MethodPut, fmt.Sprintf("/%s/_doc/d%02d?refresh=true", alias, next), `{}`)
				next += 2
			}
		})
		slices.Sort(found)
		if all := slices.Compact(found); len(all) != 20 {
			t.Errorf("%d shards: got %q", shards, all)
		}
	}
}

// TestOrderTellsNothingHidden: documents of one shard are in the same order whatever else is written to it.
func TestOrderTellsNothingHidden(t *testing.T) {
	var orders [][]string
	for _, hidden := range []int{0, 7} {
		x, alias := cluster(t), fresh(t)
		ensure(t, x, index.Spec{Alias: alias, Mapping: json.RawMessage(`{"properties":{"k":{"type":"keyword"}}}`)})
		for i := range 6 {
			for j := range hidden {
				write(t, x, alias, put(fmt.Sprintf("h%d-%d", i, j), 1, `{"k":"hidden"}`))
			}
			write(t, x, alias, put(fmt.Sprintf("v%d", i), core.Version(i+1), `{"k":"shown"}`))
		}
		if err := x.Refresh(t.Context(), alias); err != nil {
			t.Fatal(err)
		}
		h := &index.HitsRequest{Size: 10, Sort: []index.Sort{{Field: field("_id", "keyword")}}, Restricted: true}
		hits := subsearch(t, x, alias, index.SearchRequest{Filter: terms(field("k", "keyword"), "shown"), Hits: h})[0].Hits
		orders = append(orders, idsOf(hits))
	}
	if !slices.Equal(orders[0], orders[1]) || len(orders[0]) != 6 {
		t.Errorf("got %q, with hidden documents %q", orders[0], orders[1])
	}
}
