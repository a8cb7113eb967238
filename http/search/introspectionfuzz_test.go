package search_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"tutti/http/api"
	"tutti/http/search"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// FuzzCatalogueID: the paths that the summary returns of a catalogue lead to it and to no other, whatever its id.
func FuzzCatalogueID(f *testing.F) {
	for _, id := range []string{"analyses", "__proto__", "a/b", "%2F", "..", "a b?c#d", "é", "graphql", "introspection", "x\u2028<>"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if core.ValidID("id", id) != nil || id == "sqon" || id == "fields" || id == "other" {
			t.Skip()
		}
		c := apitest.Broken(id)
		h, _ := apitest.Catalogued(t, api.Config{BasePath: "/base"}, c, apitest.Plain("other"))
		get := func(target string, status int) []byte {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
			if w.Code != status || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("GET %s: got %d %s", target, w.Code, w.Body)
			}
			return w.Body.Bytes()
		}
		summary := get("/base/introspection", 200)
		introspection, _ := apitest.MemberOf(t, summary, "catalogs", id, "paths", "introspection").(string)
		graphql, _ := apitest.MemberOf(t, summary, "catalogs", id, "paths", "graphql").(string)
		wantMember(t, get(introspection, 200), id, "catalogueId")
		if slices.Contains(search.ReservedIDs(), id) {
			return
		}
		failure := get(graphql, 404)
		wantMember(t, failure, id, "catalogueId")
		wantMember(t, failure, introspection, "details")
	})
}
