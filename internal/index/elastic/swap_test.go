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
		answer{404, `{"error":"alias [` + next + `] missing","status":404}`},
		answer{200, done},
		answer{200, created}, answer{200, created})
	if identity, err := x.Identity(t.Context(), next); err != nil || identity != "a-1/U" {
		t.Fatalf("the index of the first rebuild is %q, %v", identity, err)
	}
	if err := x.Ensure(t.Context(), index.Spec{Alias: next, Replaces: "a"}); err != nil {
		t.Error(err)
	}
	want := []string{"GET /" + next + "/_settings ", "GET /a--previous ", "GET /_alias/" + next + " ", "PUT /a-2", "GET /_alias/" + next + " ", "GET /" + next + " "}
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
