//go:build services

package elastic_test

import (
	"net/http"
	"testing"

	"tutti/internal/index"
)

// TestIdentityOfAnotherIndex: an index that is deleted and made again under the same name has another identity.
func TestIdentityOfAnotherIndex(t *testing.T) {
	x := cluster(t)
	alias := fresh(t)
	ensure(t, x, index.Spec{Alias: alias})
	name := physical(t, alias)
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
