//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestCursorsOfAForeignIndex: any number of documents that hold their id in no field is paged through, in an index with several
// shards, as far as the caller may see them, also by another process on the same store. Another cursor is refused.
func TestCursorsOfAForeignIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	foreign := b.alias + "-foreign"
	folder{
		"guarded/base.json":   based("guarded", foreign, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
	}.write(b.world, dir)
	e := b.engine.(*elasticEngine)
	if status, body := e.call(http.MethodPut, "/"+foreign, `{"settings":{"number_of_shards":3,"number_of_replicas":0},
		"mappings":{"properties":{"studyId":{"type":"keyword"},"n":{"type":"long"}}}}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	t.Cleanup(func() { e.call(http.MethodDelete, "/"+foreign, "") })
	var bulk strings.Builder
	var want []string
	for n := range 40 {
		study := "S2"
		if n%3 > 0 {
			study = "S1"
			want = append(want, fmt.Sprintf("d%02d", n))
		}
		fmt.Fprintf(&bulk, `{"index":{"_id":"d%02d"}}`+"\n"+`{"studyId":%q,"n":%d}`+"\n", n, study, n%4)
	}
	if status, body := e.call(http.MethodPost, "/"+foreign+"/_bulk?refresh=true", bulk.String()); status != http.StatusOK || gjson.GetBytes(body, "errors").Bool() {
		t.Fatalf("%d %s", status, body)
	}

	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.token = system
	_, reader := b.key(`["S1.READ"]`)
	b.awaitAvailable("guarded")
	page := func(sort, after string) gjson.Result {
		t.Helper()
		q := graphql("", `query($a:JSON){guarded{hits(first:5,sort:[`+sort+`],searchAfter:$a){total edges{searchAfter node{id studyId}}}}}`, `{"a":`+after+`}`)
		return gjson.ParseBytes(b.mustSendAs(reader, http.MethodPost, q.path, q.body, http.StatusOK).raw)
	}
	for _, sort := range []string{"", `{fieldName:"n",order:desc}`} {
		var got []string
		after := "null"
		for len(got) <= len(want) {
			a := page(sort, after)
			edges := a.Get("data.guarded.hits.edges").Array()
			if a.Get("errors").Exists() || a.Get("data.guarded.hits.total").Int() != int64(len(want)) {
				t.Fatalf("after %s: %s", after, a.Raw)
			}
			if len(edges) == 0 {
				break
			}
			for _, edge := range edges {
				got = append(got, edge.Get("node.id").String())
			}
			after = edges[len(edges)-1].Get("searchAfter").Raw
			if len(got) == 10 && sort == "" {
				b.stop()
				b.start()
				b.awaitAvailable("guarded")
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("sorted by %q: got %q, want %q", sort, got, want)
		}
	}
	for _, after := range []string{`[17]`, `["d01"]`, `["` + strings.Repeat("A", 100) + `"]`} {
		a := page("", after)
		if !strings.HasPrefix(a.Get("errors.0.message").String(), "the cursor is not valid") || a.Get("errors.0.extensions.code").String() != "BAD_USER_INPUT" {
			t.Errorf("after %s: %s", after, a.Raw)
		}
	}
}
