package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// readings are all ways to the documents of a catalogue, below its id, with what a reader of documents is answered.
func readings(id string) []ask {
	query := func(name, text string) ask {
		return ask{name: name, path: "/" + id + "/graphql", body: fmt.Sprintf(`{"query":%q}`, strings.ReplaceAll(text, "ROOT", id))}
	}
	return []ask{
		query("hits", `{ROOT{hits{total edges{node{studyId}}}}}`),
		query("facets", `{ROOT{aggregations{studyId{buckets{key doc_count}}}}}`),
		query("the schema", `{__schema{types{name}}}`),
		query("the mapping", `{ROOT{mapping}}`),
		query("a saved set", `mutation{saveSet(type:ROOT,path:"studyId",sqon:{}){setId size}}`),
		{name: "tagged", path: "/" + id + "/graphql/tag", body: `{"query":"{__typename}"}`},
		{name: "a download", path: "/" + id + "/download", body: `{"format":"tsv","columns":["studyId"]}`},
	}
}

// namedWithoutRule counts the lines of the log that name a catalogue as one without an access rule, for a reason; "" for any.
func (w *world) namedWithoutRule(id, reason string) int {
	n := 0
	for _, line := range w.logs.all() {
		var l struct{ Msg, Catalogue, Reason string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "a catalogue has no access rule" && l.Catalogue == id && strings.Contains(l.Reason, reason) {
			n++
		}
	}
	return n
}

// queriesLogged counts the log lines of a catalogue's queries of a kind.
func (w *world) queriesLogged(id, kind string) int {
	n := 0
	for _, line := range w.logs.all() {
		var l struct{ Msg, Catalogue, Kind string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "query" && l.Catalogue == id && l.Kind == kind {
			n++
		}
	}
	return n
}

// TestDefaultAccess: a catalogue without an access.json is read by whom auth.defaultAccess says, on every way to it, also one that
// appears while tutti runs and the one that an index has without any folder. One with an access.json is not affected.
func TestDefaultAccess(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, auth         string
		nobody, key, owner int
		says, logs         string
	}{
		{
			"by default", "auth: {mode: token}\n", http.StatusUnauthorized, http.StatusOK, http.StatusOK, "auth.defaultAccess",
			"no access.json: anyone with a valid token can read it (auth.defaultAccess: authenticated)",
		},
		{
			"authenticated", "auth: {mode: token, defaultAccess: authenticated}\n", http.StatusUnauthorized, http.StatusOK, http.StatusOK, "access.json",
			"no access.json: anyone with a valid token can read it (auth.defaultAccess: authenticated)",
		},
		{
			"deny", "auth: {mode: token, defaultAccess: deny}\n", http.StatusUnauthorized, http.StatusForbidden, http.StatusOK, "access.json",
			"no access.json: only tokens with the scope tutti.WRITE can read it (auth.defaultAccess: deny)",
		},
		{
			"public", "auth: {mode: token, defaultAccess: public}\n", http.StatusOK, http.StatusOK, http.StatusOK, "",
			"no access.json: anyone can read it without a token (auth.defaultAccess: public)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			b := newBuiltIn(t, plan{more: tc.auth + catalogueDir(dir)})
			folder{
				"plain/base.json":     based("plain", aliasWord, `"enableSets":true`),
				"guarded/base.json":   based("guarded", aliasWord, ""),
				"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":{}}`,
				"late/base.json":      `{"documentType":`,
			}.write(b.world, dir)
			_, b.token = b.firstKey("tutti.WRITE")
			b.start()
			folder{"late/base.json": based("late", aliasWord, `"enableSets":true`)}.write(b.world, dir)
			b.awaitPaused(false)
			b.prepareStudies("S1")
			b.publish("S1", b.submit("S1"))
			b.awaitConverged()
			_, reader := b.key(`["S2.READ"]`)
			b.awaitAvailable("plain", "guarded", "late")
			b.awaitField("late", "studyId", "keyword")

			for _, id := range []string{"plain", "late"} {
				for _, q := range readings(id) {
					for token, status := range map[string]int{"": tc.nobody, reader: tc.key, b.token: tc.owner} {
						if status == http.StatusOK {
							b.mustSendAs(token, http.MethodPost, q.path, q.body, status)
							continue
						}
						b.wantRefused(token, http.MethodPost, q.path, q.body, status, tc.says)
					}
				}
				allowed := len(slices.DeleteFunc([]int{tc.nobody, tc.key, tc.owner}, func(status int) bool { return status != http.StatusOK }))
				for _, kind := range []string{"hits", "facets", "download"} {
					if n := b.queriesLogged(id, kind); n != allowed {
						t.Errorf("%d of %d queries of %s for %s are logged", n, allowed, id, kind)
					}
				}
				for token, status := range map[string]int{"": tc.nobody, reader: tc.key, b.token: tc.owner} {
					b.mustSendAs(token, http.MethodGet, "/"+id+"/graphql?query=%7B__typename%7D", "", status)
					a := b.mustSendAs(token, http.MethodGet, "/introspection/"+id, "", http.StatusOK)
					if filtered := a.get("meta.authFiltered").Bool(); filtered != (status != http.StatusOK) {
						t.Errorf("%s: authFiltered is %t where GraphQL answers %d", id, filtered, status)
					}
				}
				if n := b.namedWithoutRule(id, tc.logs); n != 1 {
					t.Errorf("that %s has no access.json is logged %d times", id, n)
				}
			}
			if a := b.mustSendAs("", http.MethodPost, "/guarded/graphql", `{"query":"{guarded{hits{total}}}"}`, http.StatusOK); a.get("data.guarded.hits.total").Int() != 1 {
				t.Errorf("what an access.json makes public: %s", a.raw)
			}
			if n := b.namedWithoutRule("guarded", ""); n != 0 {
				t.Error("one with an access.json is logged as without")
			}
		})
	}
}

// TestDefaultAccessOfAnIndex: the catalogue that an index has without a folder has no access.json either. Without tokens it is
// public unless it is denied.
func TestDefaultAccessOfAnIndex(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, auth string
		status     int
	}{
		{"token", tokens, http.StatusUnauthorized},
		{"none", "", http.StatusOK},
		{"none, denied", "auth: {defaultAccess: deny}\n", http.StatusForbidden},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBuiltIn(t, plan{more: tc.auth})
			b.startReady()
			b.awaitAvailable(b.alias)
			for _, path := range []string{"/graphql", "/" + b.alias + "/graphql"} {
				a := b.mustSend(http.MethodPost, path, `{"query":"{analysis{hits{total}}}"}`, tc.status)
				if tc.status == http.StatusOK && a.get("data.analysis.hits.total").Raw != "0" {
					t.Errorf("%s: %s", path, a.raw)
				}
			}
			b.mustSend(http.MethodPost, "/download", `{"format":"tsv","columns":["id"]}`, tc.status)
			filtered := b.mustSend(http.MethodGet, "/introspection/fields", "", http.StatusOK).get("meta.authFiltered").Bool()
			if filtered != (tc.status != http.StatusOK) {
				t.Errorf("authFiltered is %t", filtered)
			}
		})
	}
}
