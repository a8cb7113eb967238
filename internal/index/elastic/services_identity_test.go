//go:build services

package elastic_test

import (
	"errors"
	"net/http"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestIdentityOfAnotherIndex: an index that is deleted and made again under the same name has another identity.
func TestIdentityOfAnotherIndex(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias})
	name := PhysicalIndex(t, alias)
	before, err := x.Identity(t.Context(), alias)
	if err != nil || before == "" {
		t.Fatalf("%q, %v", before, err)
	}
	admin(t, http.MethodDelete, "/"+name, "")
	admin(t, http.MethodPut, "/"+name, `{"aliases":{"`+alias+`":{}}}`)
	if after, err := x.Identity(t.Context(), alias); after == before || after == "" || err != nil {
		t.Errorf("%q, %v after %q", after, err, before)
	}
}

// TestIndexOfAnyNameWithoutItsAlias: nothing is made while the index that an alias stood for is there, also by a process
// that starts; once it is deleted, it is missing.
func TestIndexOfAnyNameWithoutItsAlias(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	name := "own-" + alias
	admin(t, http.MethodPut, "/"+name, `{"aliases":{"`+alias+`":{}}}`)
	t.Cleanup(func() { admin(t, http.MethodDelete, "/"+name, "") })
	if err := x.Check(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	identity, err := x.Identity(t.Context(), alias)
	if err != nil {
		t.Fatal(err)
	}
	admin(t, http.MethodDelete, "/"+name+"/_alias/"+alias, "")
	message := "the alias " + alias + " is missing, but an index of it exists"
	wantError(t, x.Check(t.Context(), alias), core.CodeIndexBlocked, message)
	wantError(t, cluster(t).Ensure(t.Context(), index.Spec{Alias: alias, Identity: identity}), core.CodeIndexBlocked, message)
	admin(t, http.MethodDelete, "/"+name, "")
	if err := x.Check(t.Context(), alias); !errors.Is(err, core.ErrIndexMissing) {
		t.Errorf("%v of an index that was deleted", err)
	}
	ensure(t, x, index.Spec{Alias: alias, Identity: identity})
}
