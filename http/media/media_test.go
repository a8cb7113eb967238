package media_test

import (
	"net/http"
	"testing"

	"tutti/http/media"
	"tutti/internal/core"
)

// TestNegotiate: the highest quality wins, then the most specific range, then the first offer; who accepts problems accepts JSON.
func TestNegotiate(t *testing.T) {
	t.Parallel()
	const csv = "text/csv"
	for _, tt := range []struct {
		accept []string
		want   string
	}{
		{nil, media.JSON},
		{[]string{""}, media.JSON},
		{[]string{"*/*"}, media.JSON},
		{[]string{"text/*"}, csv},
		{[]string{"application/json;q=0.5, text/csv"}, csv},
		{[]string{"text/csv;q=0.5", "application/json;q=0.6"}, media.JSON},
		{[]string{"*/*, text/csv"}, csv},
		{[]string{"text/csv;q=0, */*;q=0.1"}, media.JSON},
		{[]string{"application/problem+json"}, media.JSON},
		{[]string{"image/png"}, ""},
		{[]string{"application/json;q=0"}, ""},
		{[]string{"no media type, text/csv"}, csv},
	} {
		if got := media.Negotiate(tt.accept, media.JSON, csv); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.accept, got, tt.want)
		}
	}
}

// TestDeclared: a body is one of the types that a route has, in UTF-8 and not compressed; JSON may be undeclared, and of a type of its own.
func TestDeclared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		contentType, encoding string
		json                  bool
		declared              string
	}{
		{"", "", true, ""},
		{"application/json", "", true, media.JSON},
		{"Application/JSON; charset=UTF-8", "identity", true, media.JSON},
		{"application/graphql+json", "", true, ""},
		{"application/json; charset=latin1", "", true, ""},
		{"application/json", "gzip", false, ""},
		{"text/html; charset=us-ascii", "", false, media.HTML},
		{"text/plain", "", false, ""},
		{"application/json; charset", "", false, ""},
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Content-Type": tt.contentType, "Content-Encoding": tt.encoding} {
			if value != "" {
				header.Set(name, value)
			}
		}
		if err := media.JSONContent(header); (err == nil) != tt.json || err != nil && core.CodeOf(err) != core.CodeUnsupportedMedia {
			t.Errorf("%+v: got %v as JSON", tt, err)
		}
		got, err := media.Declared(header, media.JSON, media.HTML)
		if got != tt.declared || (err == nil) != (tt.declared != "") || err != nil && core.CodeOf(err) != core.CodeUnsupportedMedia {
			t.Errorf("%+v: got %q, %v", tt, got, err)
		}
	}
}
