//go:build services

package elastic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/mapping"
)

func TestEnsureMakesTheIndex(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	x := cluster(t, func(c *elastic.Config) { c.Now, c.Shards = func() time.Time { return now }, 2 })
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	name := PhysicalIndex(t, alias)
	if want := alias + "-20260203040506"; name != want {
		t.Errorf("the index is named %s, want %s", name, want)
	}
	settings := admin(t, http.MethodGet, "/"+alias+"/_settings?flat_settings=true", "")
	for _, want := range []string{`"index.gc_deletes":"24h"`, `"index.number_of_shards":"2"`, `"index.number_of_replicas":"0"`} {
		if !strings.Contains(settings, want) {
			t.Errorf("the settings lack %s: %s", want, settings)
		}
	}
	raw, err := x.Mapping(t.Context(), alias)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mapping.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := mapping.Song()
	want.RecordDeclared(nil)
	for _, f := range want.All() {
		if f.Type == mapping.Flattened && engineOf(t).FreeForm == mapping.FlatObject { // it takes no parameters
			f.Params = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestEnsureTakesAMappingFile takes one in each of its forms, and lets it win over the defaults.
func TestEnsureTakesAMappingFile(t *testing.T) {
	x := cluster(t)
	for _, file := range []string{
		`{"dynamic":"false","properties":{"studyId":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}`,
		`{"settings":{"index":{"number_of_shards":3,"gc_deletes":"1h"}},
		  "mappings":{"dynamic":"false","properties":{"studyId":{"type":"text","fields":{"raw":{"type":"keyword"}}}}}}`,
	} {
		alias := fresh(t)
		spec := index.Spec{Alias: alias, Mapping: json.RawMessage(file), Known: mapping.Song()}
		ensure(t, x, spec)
		ensure(t, x, spec)
		if got := outcomes(write(t, x, alias, put("a", 1, `{"studyId":"S 1","u":[]}`), put("b", 1, `{"studyId":"S","u":{"v":1}}`))); got[0] != core.OutcomeIndexed || got[1] != core.OutcomeIndexed {
			t.Errorf("got %v", got)
		}
		if typeAt(t, x, alias, "u") != "" || typeAt(t, x, alias, "files") != mapping.Nested || typeAt(t, x, alias, "studyId") != "text" {
			t.Error("the mapping is not the file's on top of tutti's own")
		}
		if err := x.Refresh(t.Context(), alias); err != nil {
			t.Fatal(err)
		}
		n, err := x.Count(t.Context(), alias, core.IndexScope{Field: "studyId", Organization: "S"})
		if err != nil || n != 1 {
			t.Errorf("%d documents of S, %v", n, err)
		}
		if settings := admin(t, http.MethodGet, "/"+alias+"/_settings?flat_settings=true", ""); strings.Contains(file, "1h") &&
			(!strings.Contains(settings, `"index.gc_deletes":"1h"`) || !strings.Contains(settings, `"index.number_of_shards":"3"`)) {
			t.Errorf("the file's settings do not win: %s", settings)
		}
		err = x.Ensure(t.Context(), index.Spec{Alias: alias, Mapping: json.RawMessage(`{"properties":{"studyId":{"type":"long"}}}`)})
		wantError(t, err, core.CodeConflict, "the mapping file contradicts the mapping of "+alias+`: the field "studyId" is text in the index and long in the mapping`)
	}
	err := x.Ensure(t.Context(), index.Spec{Alias: fresh(t), Mapping: json.RawMessage(`{"properties":{"a":{"type":"nonsense"}}}`)})
	if message := core.MessageOf(err); core.CodeOf(err) != core.CodeInvalid || !strings.HasPrefix(message, `the search engine refuses the mapping file: the field "a": `) {
		t.Errorf("got %v", err)
	}
}

func TestEnsureRefusesAPlainIndex(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	admin(t, http.MethodPut, "/"+alias, "")
	if _, err := x.Mapping(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	err := x.Ensure(t.Context(), index.Spec{Alias: alias, Known: mapping.Song()})
	wantError(t, err, core.CodeConflict, "an index has the name "+alias+", which tutti needs for an alias")
	results := write(t, x, alias, put("a", 1, `{}`))
	if results[0].Outcome != core.OutcomeRetry || results[0].Code != core.CodeIndexBlocked {
		t.Errorf("got %+v", results)
	}
	wantError(t, x.Check(t.Context(), alias), core.CodeIndexBlocked, "there is no alias "+alias)
}

// TestEnsureRace lets processes whose clocks differ make the same alias; it must stand for one index in the end.
func TestEnsureRace(t *testing.T) {
	alias := fresh(t)
	var group sync.WaitGroup
	for i := range 6 {
		x := cluster(t, func(c *elastic.Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Duration(i/2) * time.Minute) }
		})
		group.Go(func() {
			if err := x.Ensure(t.Context(), index.Spec{Alias: alias, Known: mapping.Song()}); err != nil {
				t.Error(err)
			}
			if got := write(t, x, alias, put(fmt.Sprint(i), 1, `{"studyId":"S"}`)); got[0].Outcome != core.OutcomeIndexed {
				t.Errorf("got %+v", got)
			}
		})
	}
	group.Wait()
	var found map[string]json.RawMessage
	if err := json.Unmarshal([]byte(admin(t, http.MethodGet, "/"+alias+"*", "")), &found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 {
		t.Errorf("%d indices", len(found))
	}
	x := cluster(t)
	if err := x.Refresh(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	if n, err := x.Count(t.Context(), alias, core.IndexScope{}); err != nil || n != 6 {
		t.Errorf("%d documents, %v", n, err)
	}
}

func TestEnsureAddsFields(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Repositories()})
	if got := write(t, x, alias, put("a", 1, `{"studyId":17,"files":[{"size":1}]}`)); got[0].Outcome != core.OutcomeIndexed {
		t.Fatalf("got %+v", got)
	}
	ensure(t, x, index.Spec{Alias: alias, Known: mapping.Song()})
	for path, want := range map[string]mapping.Type{
		"studyId": mapping.Double, "files": mapping.Nested, "files.size": mapping.Double, "files.fileName": mapping.Keyword,
		"analysisId": mapping.Keyword, "samples.donor.info": mapping.Flattened,
	} {
		if got := typeAt(t, x, alias, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
