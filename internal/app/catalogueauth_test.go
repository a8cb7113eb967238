package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
)

// TestCatalogueAuth: authFiltered of a catalogue with an access rule is true but for the scope system; both answers have their own
// ETag. An invalid token is treated as anonymous.
func TestCatalogueAuth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: tokens + catalogueDir(dir)})
	folder{
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":null}`,
		"open/base.json":      based("open", aliasWord, ""),
		"failed/base.json":    `{}`,
		"failed/access.json":  `{"field":"studyId","scope":"{value}.READ"}`,
	}.write(b.world, dir)
	_, system := b.firstKey("tutti.WRITE")
	b.start()
	b.awaitAvailable("guarded", "open")
	b.token = system
	_, reading := b.key(`["S1.READ"]`)
	_, writing := b.key(`["S1.WRITE"]`)

	tags := map[bool]string{}
	for token, narrowed := range map[string]bool{
		"": true, reading: true, writing: true, system: false, system + "x": true, "nonsense": true,
	} {
		a := b.mustSendAs(token, http.MethodGet, "/introspection/guarded", "", http.StatusOK)
		if got := a.get("meta.authFiltered"); got.Bool() != narrowed || !got.IsBool() {
			t.Errorf("authFiltered is %s, want %t", got.Raw, narrowed)
		}
		tag := a.header.Get("ETag")
		if before := tags[narrowed]; before != "" && before != tag || !strings.HasPrefix(tag, `W/"`) {
			t.Errorf("the tag of who is narrowed %t is %s as well as %s", narrowed, before, tag)
		}
		tags[narrowed] = tag
		if vary := strings.Join(a.header.Values("Vary"), ","); !strings.Contains(vary, "Authorization") {
			t.Errorf("Vary is %q", vary)
		}
		valid := token == reading || token == writing || token == system // which the default access requires
		if a := b.mustSendAs(token, http.MethodGet, "/introspection/open", "", http.StatusOK); a.get("meta.authFiltered").Bool() == valid {
			t.Errorf("the open catalogue, with a valid token %t: %s", valid, a.get("meta").Raw)
		}
		if a := b.mustSendAs(token, http.MethodGet, "/introspection", "", http.StatusOK); a.get("catalogCount").Int() != 3 {
			t.Errorf("the summary: %s", a.raw)
		}
		b.mustSendAs(token, http.MethodGet, "/introspection/sqon", "", http.StatusOK)
		b.mustSendAs(token, http.MethodGet, "/introspection/failed", "", http.StatusOK)
	}
	if tags[true] == tags[false] {
		t.Errorf("both answers have the tag %s", tags[true])
	}
	for _, tc := range []struct {
		token, tag string
		status     int
	}{
		{"", tags[true], http.StatusNotModified},
		{reading, tags[true], http.StatusNotModified},
		{system, tags[false], http.StatusNotModified},
		{system, tags[true], http.StatusOK},
		{"", tags[false], http.StatusOK},
		{"nonsense", tags[false], http.StatusOK},
	} {
		if got := b.conditional(tc.token, "/introspection/guarded", tc.tag); got != tc.status {
			t.Errorf("with the tag %s: %d, want %d", tc.tag, got, tc.status)
		}
	}
	b.wantRefused("nonsense", http.MethodGet, "/keys", "", http.StatusUnauthorized, "tutti_")
	b.mustSendAs("nonsense", http.MethodPost, "/failed/graphql", "{}", http.StatusNotFound)
	b.wantStatus(core.CataloguesDegraded)
}

// conditional requests a path with If-None-Match, and returns the status.
func (b *builtIn) conditional(token, path, tag string) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(b.t.Context()), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("If-None-Match", tag)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode
}
