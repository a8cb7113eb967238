package song_test

import (
	"fmt"
	"regexp"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream/song"
)

// TestDeclared: all versions of all types count, over several pages.
func TestDeclared(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	for i := range 60 {
		server.Register(fmt.Sprintf("type-%02d", i), fmt.Sprintf(`{"properties":{"experiment":{"properties":{"own%d":{"type":"integer"},"ratio":{"type":"integer"}}}}}`, i))
	}
	server.Register("type-07", `{"properties":{"experiment":{"properties":{"ratio":{"type":"number"}}}}}`)
	types, none, err := client(t, server, song.Config{}).Declared(t.Context())
	if err != nil || none != "" || types.Len() != 61 {
		t.Fatalf("%d paths, %q, %v", types.Len(), none, err)
	}
	d, _ := types.Lookup("experiment.ratio")
	if d.Type != mapping.Double || d.String() != "integer (type-00:1), number (type-07:2); indexed as double" {
		t.Errorf("%s: %s", d.Type, d)
	}
	if n := server.Requests(testkit.RouteSchemas); n != 2 {
		t.Errorf("%d requests for 61 versions", n)
	}
}

// TestDeclaredFailures: a server without the route, or that refuses it with any 4xx, declares nothing; a timeout, a limit and other failures are those of a list.
func TestDeclaredFailures(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]core.Code{
		400: "", 401: "", 403: "", 404: "", 405: "", 406: "", 410: "", 422: "", 451: "", 408: core.CodeUnavailable, 429: core.CodeOverloaded, 500: core.CodeUnavailable, 503: core.CodeOverloaded,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			server := serve(t, testkit.SongConfig{})
			server.Register("a", `{"properties":{"x":{"type":"integer"}}}`)
			server.Fail(testkit.Fault{Path: regexp.MustCompile("/schemas"), Status: status})
			types, none, err := client(t, server, song.Config{}).Declared(t.Context())
			if core.CodeOf(err) != want || types != nil {
				t.Errorf("%v, %v", types, err)
			}
			if said := none == fmt.Sprintf("GET schemas was answered with status %d", status); said != (want == "") {
				t.Errorf("none is %q", none)
			}
		})
	}
	server := serve(t, testkit.SongConfig{})
	server.Fail(testkit.Fault{Path: regexp.MustCompile("/schemas"), Status: 200, Body: `{"resultSet":[]}`})
	if _, _, err := client(t, server, song.Config{}).Declared(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
		t.Errorf("another form: %v", err)
	}
}
