//go:build services

package elastic_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestSwapSettings checks that an index is filled without copies, refreshes and the mapping file's aliases, and has all of them after
// Swap, while an alias that others made stays where it is.
func TestSwapSettings(t *testing.T) {
	x := tidyCluster(t)
	alias := "test-" + uuid.NewString()
	spec := index.Spec{Alias: alias, Mapping: json.RawMessage(`{"settings":{"refresh_interval":"7s","number_of_replicas":2},"mappings":{"dynamic":"false"},` +
		`"aliases":{"` + alias + `-all":{},"` + alias + `-some":{"filter":{"term":{"a":1}}}}}`)}
	next := spec
	next.Alias, next.Replaces = core.NextAlias(alias), alias
	for _, s := range []index.Spec{spec, next, next} {
		if err := x.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	old, filled := PhysicalIndex(t, alias), PhysicalIndex(t, next.Alias)
	if old == filled || !strings.HasPrefix(filled, alias+"-2") {
		t.Fatalf("the indices are %s and %s", old, filled)
	}
	admin(t, http.MethodPut, "/"+old+"/_alias/"+alias+"-portal", "")
	settings := func(name, want string) {
		t.Helper()
		raw := gjson.Get(admin(t, http.MethodGet, "/"+name+"/_settings", ""), "*.settings.index")
		if got := raw.Get("refresh_interval").String() + " " + raw.Get("number_of_replicas").String(); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	aliases := func(name string, want ...string) {
		t.Helper()
		got := gjson.Get(admin(t, http.MethodGet, "/"+name+"/_alias", ""), "*.aliases").Map()
		for _, one := range want {
			if _, has := got[one]; !has || len(got) != len(want) {
				t.Errorf("%s has the aliases %v, want %v", name, got, want)
			}
		}
	}
	settings(filled, "-1 0")
	aliases(filled, next.Alias)
	if err := x.Swap(t.Context(), spec, next.Alias, ""); err != nil {
		t.Fatal(err)
	}
	settings(filled, "7s 2")
	aliases(filled, alias, alias+"-all", alias+"-some")
	aliases(old, core.PreviousAlias(alias), alias+"-portal")
	if got := gjson.Get(admin(t, http.MethodGet, "/"+filled+"/_alias/"+alias+"-some", ""), "*.aliases.*.filter").Raw; got != `{"term":{"a":1}}` {
		t.Errorf("the filter of the alias is %s", got)
	}

	for _, kept := range []bool{true, false} { // the index that others read, then one that nobody reads
		if err := x.Ensure(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if err := x.Swap(t.Context(), spec, next.Alias, ""); err != nil {
			t.Fatal(err)
		}
		aliases(old, alias+"-portal")
		if found := gjson.Get(admin(t, http.MethodGet, "/"+filled, ""), "*.aliases").Exists(); found != kept {
			t.Errorf("%s exists: %t, want %t", filled, found, kept)
		}
	}
	admin(t, http.MethodDelete, "/"+old, "")
}

// TestNamesOfRebuildsTaken: no index is filled that could not take the place of the other one, because an index has a name that the
// rebuild needs for an alias. The hint says what to do.
func TestNamesOfRebuildsTaken(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias})
	next := index.Spec{Alias: core.NextAlias(alias), Replaces: alias}
	for _, taken := range []string{core.NextAlias(alias), core.PreviousAlias(alias)} {
		admin(t, http.MethodPut, "/"+taken, "")
		err := x.Ensure(t.Context(), next)
		wantError(t, err, core.CodeConflict, "an index has the name "+taken+", which tutti needs for an alias")
		if want := "rebuilds need this name: delete the index " + taken + ", or copy it to another name first"; core.HintOf(err) != want {
			t.Errorf("the hint is %q, want %q", core.HintOf(err), want)
		}
		admin(t, http.MethodDelete, "/"+taken, "")
		if got := gjson.Parse(admin(t, http.MethodGet, "/"+alias+"-*", "")).Map(); len(got) != 1 {
			t.Errorf("the indices are %v", got)
		}
	}
	if err := x.Ensure(t.Context(), next); err != nil {
		t.Error(err)
	}
	admin(t, http.MethodDelete, "/"+PhysicalIndex(t, next.Alias), "")
}

// TestSwapTemplates checks that no index is filled to which a template of the cluster adds an alias, and that the alias follows the rebuilt index
// if the mapping file names it instead, as the hint says.
func TestSwapTemplates(t *testing.T) {
	for name, template := range map[string]struct{ path, body string }{
		"composable": {"/_index_template/", `{"index_patterns":["%s-*"],"priority":500,"template":{"aliases":{"%s-everything":{}}}}`},
		"legacy":     {"/_template/", `{"index_patterns":["%s-*"],"aliases":{"%s-everything":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			x := tidyCluster(t)
			alias := "test-" + uuid.NewString()
			if err := x.Ensure(t.Context(), index.Spec{Alias: alias}); err != nil {
				t.Fatal(err)
			}
			path := template.path + alias
			admin(t, http.MethodPut, path, strings.ReplaceAll(template.body, "%s", alias))
			t.Cleanup(func() { admin(t, http.MethodDelete, path, "") })
			for range 2 {
				err := x.Ensure(t.Context(), index.Spec{Alias: core.NextAlias(alias), Replaces: alias})
				if core.CodeOf(err) != core.CodeConflict || !strings.HasPrefix(core.MessageOf(err), "the index template "+alias+" adds the alias "+alias+"-everything") {
					t.Fatalf("Ensure returned %v", err)
				}
			}
			if got := gjson.Parse(admin(t, http.MethodGet, "/"+alias+"-2*", "")).Map(); len(got) != 1 {
				t.Errorf("the indices are %v", got)
			}
			admin(t, http.MethodPut, path, strings.NewReplacer("%s-everything", alias+"-other", "%s", "other-"+alias).Replace(template.body))
			spec := index.Spec{Alias: alias, Mapping: json.RawMessage(`{"aliases":{"` + alias + `-everything":{}}}`)}
			next := index.Spec{Alias: core.NextAlias(alias), Replaces: alias, Mapping: spec.Mapping}
			if err := errors.Join(x.Ensure(t.Context(), next), x.Swap(t.Context(), spec, next.Alias, "")); err != nil {
				t.Fatal(err)
			}
			rebuilt, found := PhysicalIndex(t, alias), gjson.Parse(admin(t, http.MethodGet, "/_alias/"+alias+"-everything", "")).Map()
			if _, has := found[rebuilt]; !has || len(found) != 1 {
				t.Errorf("the alias stands for %v, want %s", found, rebuilt)
			}
		})
	}
}
