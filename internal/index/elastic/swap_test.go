package elastic_test

import (
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestEnsureAfterSwapElsewhere: a process that has seen an index behind the alias of a rebuild creates the index of the next rebuild, although
// the first one still exists: another process has moved the alias of the repository to it.
func TestEnsureAfterSwapElsewhere(t *testing.T) {
	next := core.NextAlias("a")
	created := `{"a-2":{"aliases":{"` + next + `":{}},"settings":{"index":{"uuid":"V"}}}}`
	x, s := play(t,
		answer{200, `{"a-1":{"settings":{"index":{"uuid":"U","number_of_shards":"1"}}}}`},
		refused(404, "index_not_found_exception", "no such index"),
		refused(404, "index_not_found_exception", "no such index"),
		answer{200, done},
		answer{200, created}, answer{200, created})
	if identity, err := x.Identity(t.Context(), next); err != nil || identity != "a-1/U" {
		t.Fatalf("the index of the first rebuild is %q, %v", identity, err)
	}
	if err := x.Ensure(t.Context(), index.Spec{Alias: next, Replaces: "a"}); err != nil {
		t.Error(err)
	}
	want := []string{"GET /" + next + "/_settings ", "GET /a--previous ", "GET /" + next + "/_alias ", "PUT /a-2", "GET /" + next + "/_alias ", "GET /" + next + " "}
	if !slices.EqualFunc(s.asked, want, strings.HasPrefix) {
		t.Errorf("asked %q, want %q", s.asked, want)
	}
}

// TestDropOfSharedIndex: an index from before a rebuild that others have given an alias is not deleted.
func TestDropOfSharedIndex(t *testing.T) {
	previous := core.PreviousAlias("a")
	found := `{"a-1":{"aliases":{"` + previous + `":{},"portal":{}},"settings":{"index":{"uuid":"U"}}}}`
	x, _ := play(t, answer{200, found}, answer{200, found})
	wantError(t, x.Drop(t.Context(), previous, "a-1/U"), core.CodeConflict, "the index a-1 is also read by other aliases: portal")
}

// TestDropRefused: no index is deleted that another alias or a data stream reads, or that a rebuild did not create, and the error says what
// stands there and how to go on.
func TestDropRefused(t *testing.T) {
	const name = "a-20260102030405"
	next, previous := core.NextAlias("a"), core.PreviousAlias("a")
	for title, c := range map[string]struct {
		alias, found, message, hint string
	}{
		"serving": {
			next, `{"` + name + `":{"aliases":{"a":{},"` + next + `":{}}}}`,
			"the index " + name + " is also read by other aliases: a", "remove the alias a--next from it: POST /_aliases",
		},
		"filled and read by others": {
			next, `{"` + name + `":{"aliases":{"` + next + `":{},"portal":{}}}}`,
			"the index " + name + " is also read by other aliases: portal", "remove them from it first, or the alias a--next to keep it",
		},
		"of a data stream": {
			next, `{".ds-b-000001":{"aliases":{"` + next + `":{}},"data_stream":"b"}}`,
			"the index .ds-b-000001 is also read by other aliases: b", "remove them from it first, or the alias a--next to keep it",
		},
		"foreign": {
			next, `{"theirs":{"aliases":{"` + next + `":{}}}}`,
			"the alias a--next stands for the index theirs, which tutti did not create", "remove the alias a--next from it",
		},
		"before and serving": {
			previous, `{"` + name + `":{"aliases":{"a":{},"` + previous + `":{}}}}`,
			"the index " + name + " is also read by other aliases: a", "remove the alias a--previous from it: POST /_aliases",
		},
	} {
		t.Run(title, func(t *testing.T) {
			x, _ := play(t, answer{200, c.found}, answer{200, c.found})
			err := x.Drop(t.Context(), c.alias, "")
			wantError(t, err, core.CodeConflict, c.message)
			if core.HintOf(err) != c.hint {
				t.Errorf("the hint is %q, want %q", core.HintOf(err), c.hint)
			}
		})
	}
}

// TestEnsureBesideServing: an alias of a rebuild that was added to the serving index by hand deletes nothing and changes no mapping.
func TestEnsureBesideServing(t *testing.T) {
	next := core.NextAlias("a")
	found := `{"a-20260102030405":{"aliases":{"a":{},"` + next + `":{}}}}`
	x, s := play(t, refused(404, "index_not_found_exception", "no such index"), answer{200, found}, answer{200, found}, answer{200, found})
	wantError(t, x.Ensure(t.Context(), index.Spec{Alias: next, Replaces: "a"}), core.CodeConflict,
		"the index a-20260102030405 is also read by other aliases: a")
	for _, request := range s.asked {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("asked %q", request)
		}
	}
}

// TestTemplateAddsAlias: an index to be filled that a template of the cluster gives another alias is deleted again, and the error names the
// template of either kind. Once the template is without the alias and the mapping file names it, as the hint says, an index is created that is
// not found by that alias until Swap (TestSwapTemplates).
func TestTemplateAddsAlias(t *testing.T) {
	next := core.NextAlias("a")
	created := `{"a-2":{"aliases":{"` + next + `":{},"portal":{}},"settings":{"index":{"uuid":"V"}}}}`
	begin := []answer{refused(404, "index_not_found_exception", "no such index"), {404, `{"error":"alias [` + next + `] missing","status":404}`}, {200, done}}
	other := `{"name":"other","index_template":{"index_patterns":["b-*"],"template":{"aliases":{"portal":{}}}}}`
	for name, c := range map[string]struct {
		templates []answer
		want      string
	}{
		"index template": {
			[]answer{{200, `{"index_templates":[` + other + `,{"name":"lab","index_template":{"index_patterns":["a-*"],"template":{"aliases":{"portal":{}}}}}]}`}},
			"the index template lab",
		},
		"of components": {
			[]answer{{200, `{"index_templates":[{"name":"lab","index_template":{"index_patterns":["a-*"],"composed_of":["aliases"]}}]}`}},
			"the index template lab",
		},
		"legacy template": {
			[]answer{{200, `{"index_templates":[` + other + `]}`}, {200, `{"old":{"index_patterns":["a*"],"aliases":{"portal":{}}},"older":{"index_patterns":["a*"],"aliases":{}}}`}},
			"the index template old",
		},
		"not listed": {[]answer{refused(403, "security_exception", "no"), refused(403, "security_exception", "no")}, "a template of the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			without := answer{200, strings.Replace(created, `,"portal":{}`, "", 1)}
			x, s := play(t, slices.Concat(begin, []answer{{200, created}, {200, created}, {200, done}}, c.templates, begin, []answer{without, without})...)
			spec := index.Spec{Alias: next, Replaces: "a"}
			err := x.Ensure(t.Context(), spec)
			wantError(t, err, core.CodeConflict,
				c.want+" adds the alias portal to new indices, so that searches of it would find every document twice during a rebuild")
			wantHint(t, err, "remove the alias from the template; name it in the mapping file instead, and it follows the rebuilt index")
			if !slices.ContainsFunc(s.asked, func(request string) bool { return strings.HasPrefix(request, "DELETE /a-2") }) {
				t.Errorf("the index was not deleted: %q", s.asked)
			}
			s.asked, spec.Mapping = nil, []byte(`{"aliases":{"portal":{}}}`)
			if err := x.Ensure(t.Context(), spec); err != nil || strings.Contains(s.asked[2], "portal") {
				t.Errorf("without the template: %v; asked %q", err, s.asked)
			}
		})
	}
}

// TestRebuildNameTaken: an index with a name that the aliases of a rebuild need ends the rebuild before it creates one.
func TestRebuildNameTaken(t *testing.T) {
	next, previous := core.NextAlias("a"), core.PreviousAlias("a")
	taken := func(name string) answer {
		return answer{200, `{"` + name + `":{"aliases":{},"mappings":{},"settings":{"index.uuid":"U"}}}`}
	}
	free := refused(404, "index_not_found_exception", "no such index")
	for name, answers := range map[string][]answer{
		previous: {taken(previous)},
		next:     {free, {404, `{"error":"alias [` + next + `] missing","status":404}`}, refused(400, "invalid_alias_name_exception", "an index exists with the same name as the alias")},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := play(t, answers...)
			err := x.Ensure(t.Context(), index.Spec{Alias: next, Replaces: "a"})
			wantError(t, err, core.CodeConflict, "an index has the name "+name+", which tutti needs for an alias")
			if hint := core.HintOf(err); hint != "rebuilds need this name: delete the index "+name+", or copy it to another name first" {
				t.Errorf("the hint is %q", hint)
			}
		})
	}
}
