//go:build services

package elastic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic/aliases"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
)

// plainIndex makes an index that another program wrote 50 documents to.
func plainIndex(t *testing.T) string {
	t.Helper()
	name := fresh(t)
	admin(t, http.MethodPut, "/"+name, `{"settings":{"number_of_replicas":0,"number_of_shards":2},"aliases":{"`+name+`-portal":{"filter":{"term":{"studyId.keyword":"S1"}}}},
		"mappings":{"properties":{"age":{"type":"keyword"}}}}`)
	var bulk strings.Builder
	for i := range 50 {
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n{\"studyId\":\"S%d\",\"age\":\"%d\"}\n", i, i%2, i)
	}
	admin(t, http.MethodPost, "/"+name+"/_bulk?refresh=true", bulk.String())
	return name
}

// TestAdopt: an index of another program becomes an alias of the same documents, while searches find all of them; only
// searches that have begun when the index is deleted may fail.
func TestAdopt(t *testing.T) {
	x, name := cluster(t), plainIndex(t)
	stop := make(chan struct{})
	var searching sync.WaitGroup
	searches, broken := 0, 0
	searching.Go(func() {
		for ; ; searches++ {
			select {
			case <-stop:
				return
			default:
			}
			answer := admin(t, http.MethodPost, "/"+name+"/_search", `{"size":60,"query":{"match_all":{}}}`)
			shards := gjson.Get(answer, "_shards")
			if incomplete := shards.Get("successful").Int() < shards.Get("total").Int(); broken < 50 &&
				(incomplete || gjson.Get(answer, "status").Int() == http.StatusServiceUnavailable) {
				broken++ // the index was deleted after the search had begun
				continue
			}
			if n := gjson.Get(answer, "hits.hits.#").Int(); n != 50 {
				t.Errorf("a search found %d documents: %.300s", n, answer)
				return
			}
		}
	})
	physical, _, err := x.Adopt(t.Context(), name)
	close(stop)
	searching.Wait()
	if err != nil || !strings.HasPrefix(physical, name+"-2") || searches == 0 {
		t.Fatalf("%s, %v, %d searches", physical, err, searches)
	}
	if got := PhysicalIndex(t, name); got != physical {
		t.Errorf("the alias stands for %s", got)
	}
	aliases := gjson.Get(admin(t, http.MethodGet, "/"+physical+"/_alias", ""), "*.aliases").Map()
	if len(aliases) != 2 {
		t.Errorf("the index has the aliases %v", aliases)
	}
	if got := gjson.Get(admin(t, http.MethodPost, "/"+name+"-portal/_count", ""), "count").Int(); got != 25 {
		t.Errorf("the alias with a filter finds %d documents", got)
	}
	ensure(t, x, index.Spec{Alias: name, Known: mapping.Repositories()})
	if got := write(t, x, name, put("0", 1<<40, `{"age":"7"}`), put("new", 1<<40, `{"age":"7"}`)); got[0].Outcome != core.OutcomeIndexed || got[1].Outcome != core.OutcomeIndexed {
		t.Errorf("%+v", got)
	}
	_, _, err = x.Adopt(t.Context(), name)
	wantError(t, err, core.CodeConflict, name+" is an alias already: there is nothing to adopt")
	_, _, err = x.Adopt(t.Context(), name+"-absent")
	wantError(t, err, core.CodeNotFound, "there is no index "+name+"-absent: tutti creates it at its start")
}

// TestAdoptAgain: what an interrupted Adopt left behind does not prevent the next one, and one that fails changes nothing.
func TestAdoptAgain(t *testing.T) {
	x, name := cluster(t), plainIndex(t)
	block := func() string {
		return gjson.Get(admin(t, http.MethodGet, "/"+name+"/_settings", ""), "*.settings.index.blocks.write").String()
	}
	admin(t, http.MethodPost, "/"+name+"/_close", "")
	if _, _, err := x.Adopt(t.Context(), name); err == nil || block() == "true" || PhysicalIndex(t, name) != name {
		t.Fatalf("%v, the index has the write block %q", err, block())
	}
	admin(t, http.MethodPost, "/"+name+"/_open", "")

	created := gjson.Get(admin(t, http.MethodGet, "/"+name+"/_settings", ""), "*.settings.index.creation_date").Int()
	left := name + "-" + nameTime(created)
	admin(t, http.MethodPut, "/"+left, `{}`)
	_, _, err := x.Adopt(t.Context(), name)
	wantError(t, err, core.CodeConflict, "the index "+left+" exists, which tutti would create")
	if block() == "true" {
		t.Error("the index takes no writes")
	}
	admin(t, http.MethodDelete, "/"+left, "")

	admin(t, http.MethodPut, "/"+name+"/_settings", `{"index.blocks.write":true}`)
	if answer := admin(t, http.MethodPut, "/"+name+"/_clone/"+left, `{"aliases":{"`+name+`--adopting":{}}}`); gjson.Get(answer, "error").Exists() {
		t.Fatal(answer)
	}
	physical, _, err := x.Adopt(t.Context(), name)
	if err != nil || physical != left || block() == "true" {
		t.Errorf("%s, %v, the write block is %q", physical, err, block())
	}
	if got := gjson.Get(admin(t, http.MethodPost, "/"+name+"/_count", ""), "count").Int(); got != 50 {
		t.Errorf("%d documents", got)
	}
}

// TestAdoptKilled: after an Adopt whose process was killed, before the clone or after it, Ensure reports that the index takes no writes, and
// the next Adopt completes it.
func TestAdoptKilled(t *testing.T) {
	for name, last := range map[string]string{"before the clone": "/_clone/", "after the clone": "/_aliases"} {
		t.Run(name, func(t *testing.T) {
			x, plain := cluster(t), plainIndex(t)
			target, err := url.Parse(environment(t, "TUTTI_TEST_ELASTICSEARCH_URL"))
			if err != nil {
				t.Fatal(err)
			}
			var killed atomic.Bool
			proxy := httputil.NewSingleHostReverseProxy(target)
			dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				isLast := strings.Contains(r.URL.Path, last) && r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "--adopting")
				if killed.Load() || isLast {
					killed.Store(true)
					panic(http.ErrAbortHandler)
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(dying.Close)
			if _, _, err := open(t, dying.URL).Adopt(t.Context(), plain); err == nil || !killed.Load() {
				t.Fatalf("Adopt: %v", err)
			}
			block := func() string {
				return gjson.Get(admin(t, http.MethodGet, "/"+plain+"/_settings", ""), "*.settings.index.blocks.write").String()
			}
			if block() != "true" {
				t.Fatalf("the write block is %q", block())
			}
			err = x.Ensure(t.Context(), index.Spec{Alias: plain})
			wantError(t, err, core.CodeConflict, "tutti mapping adopt has not ended for the index "+plain+", which takes no writes until it does: repeat the command if it is not running")
			wantHint(t, err, "tutti mapping adopt completes what was interrupted, or restores the writes")
			physical, _, err := x.Adopt(t.Context(), plain)
			if err != nil || block() == "true" {
				t.Fatalf("%v, the write block is %q", err, block())
			}
			aliases := gjson.Get(admin(t, http.MethodGet, "/"+physical+"/_alias", ""), "*.aliases").Map()
			if _, served := aliases[plain]; !served || len(aliases) != 2 {
				t.Errorf("the index has the aliases %v", aliases)
			}
			if got := gjson.Get(admin(t, http.MethodPost, "/"+plain+"/_count", ""), "count").Int(); got != 50 {
				t.Errorf("%d documents", got)
			}
		})
	}
}

// TestCompare checks what is said of each thing that a name can be.
func TestCompare(t *testing.T) {
	x, name := cluster(t), plainIndex(t)
	spec := index.Spec{Known: mapping.Repositories(), Mapping: json.RawMessage(`{"settings":{"number_of_shards":3,"index":{"refresh_interval":"7s"}},"mappings":{"dynamic":"strict",
		"properties":{"age":{"type":"long"},"d":{"type":"date","format":"strict_date_optional_time||epoch_millis"},"f":{"type":"flattened"}}}}`)}
	compare := func(alias string) index.Comparison {
		t.Helper()
		spec.Alias = alias
		c, err := x.Compare(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := compare(name + "-absent"); c.Kind != index.NameAbsent || len(c.Indices)+len(c.Fields) > 0 {
		t.Errorf("%+v", c)
	}
	c := compare(name)
	if c.Kind != index.NameIndex || c.Documents != 50 || !cmp.Equal(c.Aliases, []string{name + "-portal"}) {
		t.Errorf("%+v", c)
	}
	changes := map[string]mapping.Change{}
	for _, d := range c.Fields {
		changes[d.Field] = d.Change
	}
	want := map[string]mapping.Change{
		"(mapping)": mapping.ChangeUpdate, "age": mapping.ChangeRebuild, "d": mapping.ChangeAdd, "f": mapping.ChangeAdd, "studyId": mapping.ChangeNone, "repositories": mapping.ChangeAdd,
	}
	for field, change := range want {
		if changes[field] != change {
			t.Errorf("%s: %q, want %q", field, changes[field], change)
		}
	}
	if diff := cmp.Diff([]index.SettingDifference{
		{Setting: "index.number_of_shards", Wanted: "3", Live: "2"}, {Setting: "index.refresh_interval", Wanted: "7s"},
	}, c.Settings); diff != "" {
		t.Error(diff)
	}
	limits := []index.SettingDifference{
		{Setting: "index.mapping.nested_fields.limit", Wanted: "200", Live: "50"},
		{Setting: "index.mapping.nested_objects.limit", Wanted: "100000", Live: "10000"},
		{Setting: "index.mapping.total_fields.limit", Wanted: "5000", Live: "1000"},
	}
	if engine := engineOf(t); engine.Product == flavour.Elasticsearch && !engine.Version.Less(flavour.Version{Major: 9, Minor: 5}) {
		limits[0].Live = "100"
		limits = slices.Insert(limits, 2, index.SettingDifference{Setting: mapping.SettingNestedParents, Wanted: "200", Live: "50"})
		limits = slices.Insert(limits, 0, index.SettingDifference{Setting: mapping.SettingArrayObjects, Wanted: "100000", Live: "50000"})
	}
	if diff := cmp.Diff(limits, c.Limits); diff != "" {
		t.Error(diff)
	}
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Mapping: spec.Mapping, Known: spec.Known})
	if c := compare(alias); c.Kind != index.NameAlias || len(c.Fields)+len(c.Settings)+len(c.Limits) > 0 || !cmp.Equal(c.Indices, []string{PhysicalIndex(t, alias)}) {
		t.Errorf("a new index: %+v", c)
	}
	err := x.Ensure(t.Context(), index.Spec{Alias: alias, Mapping: json.RawMessage(`{"properties":{"age":{"type":"keyword"},"n":{"type":"long"}}}`)})
	wantError(t, err, core.CodeConflict, "the mapping file contradicts the mapping of "+alias+`: the field "age" is long in the index and keyword in the mapping`)
	admin(t, http.MethodPut, "/"+name+"/_alias/"+alias, "")
	if c := compare(alias); c.Kind != index.NameSeveral || len(c.Indices) != 2 {
		t.Errorf("an alias of two indices: %+v", c)
	}
}

// nameTime returns the time in the name of the physical index of an index that was created at a time in milliseconds.
func nameTime(created int64) string { return time.UnixMilli(created).UTC().Format(aliases.NameLayout) }
