package elastic_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/tools/testkit"
)

// wantSentinel fails unless err is want (nil: none) and no other sentinel of the port.
func wantSentinel(t *testing.T, err, want error) {
	t.Helper()
	for _, sentinel := range []error{core.ErrIndexMissing, core.ErrIndexForbidden, core.ErrIndexUnreachable} {
		if got := errors.Is(err, sentinel); got != errors.Is(want, sentinel) {
			t.Errorf("%v: is %q: %t", err, sentinel, got)
		}
	}
}

// TestMappingErrors: a catalogue says by these why it cannot be read.
func TestMappingErrors(t *testing.T) {
	const notAsked = "the index returned an unexpected response"
	tests := []struct {
		name     string
		answer   answer
		sentinel error
		code     core.Code
		message  string
	}{
		{"no such index", refused(404, "index_not_found_exception", "no such index [a]"), core.ErrIndexMissing, core.CodeIndexBlocked, "the index is missing"},
		{"a proxy's 404", answer{404, "<html>"}, nil, core.CodeUnavailable, "the index returned an unexpected response"},
		{"no credentials", refused(401, "security_exception", "missing authentication credentials"), core.ErrIndexForbidden, core.CodeIndexBlocked, "the index rejected the credentials"},
		{"no privilege", refused(403, "security_exception", "action [indices:admin/mappings/get] is unauthorized"), core.ErrIndexForbidden, core.CodeIndexBlocked, "the user of the index lacks a privilege: the engine refuses indices:admin/mappings/get"},
		{"a proxy's 401", answer{401, ""}, core.ErrIndexForbidden, core.CodeIndexBlocked, "the index rejected the credentials"},
		{"a proxy's 403", answer{403, "<html>"}, core.ErrIndexForbidden, core.CodeIndexBlocked, "the index rejected the credentials"},
		{"blocked", refused(403, "cluster_block_exception", "index [a] blocked by: [FORBIDDEN/9/index metadata (api)]"), nil, core.CodeIndexBlocked, "the index is blocked"},
		{"no master", refused(503, "cluster_block_exception", "no master"), core.ErrIndexUnreachable, core.CodeOverloaded, "the index is blocked"},
		{"closed", refused(400, "index_closed_exception", "closed"), nil, core.CodeIndexBlocked, "the index is closed"},
		{"a name it does not like", refused(400, "invalid_index_name_exception", "bad"), nil, core.CodeInvalid, "the index rejected the request"},
		{"overloaded", answer{429, ""}, nil, core.CodeOverloaded, "the index is overloaded"},
		{"a server error", answer{500, ""}, nil, core.CodeUnavailable, "the index returned an unexpected response"},
		{"a bad gateway", answer{502, "<html>"}, core.ErrIndexUnreachable, core.CodeUnavailable, "the index returned an unexpected response"},
		{"unavailable", answer{503, ""}, core.ErrIndexUnreachable, core.CodeOverloaded, "the index is overloaded"},
		{"a gateway that waited", answer{504, ""}, core.ErrIndexUnreachable, core.CodeUnavailable, "the index returned an unexpected response"},
		{"another server error", answer{505, ""}, nil, core.CodeUnavailable, "the index returned an unexpected response"},
		{"cut", answer{}, core.ErrIndexUnreachable, core.CodeUnavailable, "the response of the index is incomplete"},
		{"not JSON", answer{200, "<html>login</html>"}, nil, core.CodeUnavailable, notAsked},
		{"no index in it", answer{200, `{}`}, nil, core.CodeUnavailable, notAsked},
		{"another answer", answer{200, `{"tagline":"You Know, for Search"}`}, nil, core.CodeUnavailable, notAsked},
		{"an index without its mapping", answer{200, `{"a-1":{"mappings":{}},"a-2":{}}`}, nil, core.CodeUnavailable, notAsked},
		{"one that is no mapping", answer{200, `{"a-1":{"mappings":{}},"a-2":{"mappings":[]}}`}, nil, core.CodeUnsupported, "the mapping of a cannot be parsed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, _ := play(t, tt.answer)
			raw, err := x.Mapping(t.Context(), "a")
			if raw != nil {
				t.Errorf("got %s", raw)
			}
			wantError(t, err, tt.code, tt.message)
			wantSentinel(t, err, tt.sentinel)
		})
	}
}

func TestMappingOfNobody(t *testing.T) {
	address := testkit.NewAddress(t)
	x := open(t, "http://"+address)
	_, err := x.Mapping(t.Context(), "a")
	wantError(t, err, core.CodeUnavailable, "the index does not answer")
	wantSentinel(t, err, core.ErrIndexUnreachable)

	closed := open(t, "http://"+address)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = closed.Mapping(t.Context(), "a")
	wantError(t, err, core.CodeUnavailable, "the index has been closed")
	wantSentinel(t, err, core.ErrIndexUnreachable)
}

// TestMappingOfOneWhoHangs: neither a cluster that never begins its answer nor one that never ends it holds a call up
// beyond its time.
func TestMappingOfOneWhoHangs(t *testing.T) {
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	halting := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"a-1":{"mappings":`))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		message string
	}{
		{"silent", silent, "the index does not answer"},
		{"halting", halting, "the response of the index is incomplete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := serving(t, tt.handler)
			x := open(t, url, func(c *elastic.Config) { c.Timeout = 50 * time.Millisecond })
			_, err := x.Mapping(t.Context(), "a")
			wantError(t, err, core.CodeUnavailable, tt.message)
			wantSentinel(t, err, core.ErrIndexUnreachable)

			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err = open(t, url).Mapping(ctx, "a")
			wantError(t, err, core.CodeUnavailable, tt.message)
			wantSentinel(t, err, core.ErrIndexUnreachable)
		})
	}
}

// TestMappingOfSeveral: a name that stands for several indices can be read, but not written to.
func TestMappingOfSeveral(t *testing.T) {
	one := `{"dynamic":"strict","properties":{"k":{"type":"keyword"}},"_meta":{"b":1}}`
	tests := []struct {
		name, body, want, message string
	}{
		{"one, as it is", `{"a-1":{"mappings":` + one + `}}`, one, ""},
		{"one without fields", `{"a-1":{"mappings":{}}}`, `{}`, ""},
		{
			"two", `{"a-2":{"mappings":{"properties":{"k":{"type":"keyword","ignore_above":9},"n":{"type":"nested","properties":{"y":{"type":"long"}}}}}},` +
				`"a-1":{"mappings":{"properties":{"k":{"type":"keyword","ignore_above":5},"n":{"type":"nested","properties":{"x":{"type":"date"}}}}}}}`,
			`{"properties":{"k":{"ignore_above":9,"type":"keyword"},` +
				`"n":{"properties":{"x":{"type":"date"},"y":{"type":"long"}},"type":"nested"}}}`, "",
		},
		{
			"one of three is empty", `{".ds-a-000001":{"mappings":{}},".ds-a-000002":{"mappings":{"properties":{"k":{"type":"ip"}}}},".ds-a-000003":{"mappings":{}}}`,
			`{"properties":{"k":{"type":"ip"}}}`, "",
		},
		{
			"contradicting", `{"a-1":{"mappings":{"properties":{"o":{"properties":{"k":{"type":"keyword"}}}}}},"a-2":{"mappings":{"properties":{"o":{"properties":{"k":{"type":"long"}}}}}}}`,
			"", `the field "o.k" is of type keyword in one index of the alias and of type long in another`,
		},
		{
			"an object and a nested", `{"a-1":{"mappings":{"properties":{"o":{"type":"nested"}}}},"a-2":{"mappings":{"properties":{"o":{"type":"object"}}}}}`,
			"", `the field "o" is of type nested in one index of the alias and of type object in another`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, s := play(t, answer{200, tt.body})
			raw, err := x.Mapping(t.Context(), "a")
			if tt.message != "" {
				wantError(t, err, core.CodeConflict, tt.message)
				wantSentinel(t, err, nil)
			} else if err != nil {
				t.Fatal(err)
			}
			if string(raw) != tt.want {
				t.Errorf("got %s, want %s", raw, tt.want)
			}
			if s.asked[0] != "GET /a/_mapping " {
				t.Errorf("asked %s", s.asked[0])
			}
		})
	}
	two := `{"a-1":{"mappings":{}},"a-2":{"mappings":{}}}`
	x, _ := play(t, answer{200, `{"a-1":{"aliases":{"a":{}}}}`}, answer{200, two}, answer{200, two})
	wantError(t, x.Ensure(t.Context(), index.Spec{Alias: "a"}), core.CodeConflict, "the alias a has more than one index: a-1, a-2")
	_, err := x.Count(t.Context(), "a", core.IndexScope{Field: "k", Organization: "S"})
	wantError(t, err, core.CodeConflict, "the alias a has more than one index: a-1, a-2")
}
