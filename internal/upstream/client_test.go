package upstream_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/upstream"
)

func TestNewClientRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  upstream.Config
		want string
	}{
		{"no url", upstream.Config{}, "the repository's url must start with http:// or https:// and a host"},
		{"scheme", upstream.Config{URL: "ftp://h"}, "the repository's url must start with http:// or https:// and a host"},
		{"malformed", upstream.Config{URL: "http://h/%zz"}, "the repository's url is not a valid URL"},
		{"credentials", upstream.Config{URL: "http://u:p@h"}, "the repository's url must not contain credentials; use username and password"},
		{"query", upstream.Config{URL: "http://h?a=b"}, "the repository's url must not have a query or a fragment"},
		{"two credentials", upstream.Config{URL: "http://h", Token: "t", Username: "u"}, "a repository takes a token or a username, not both"},
		{"token", upstream.Config{URL: "http://h", Token: "t\n"}, "the repository's token must not contain line breaks"},
		{"timeout", upstream.Config{URL: "http://h", Timeout: -1}, "the repository's timeout must not be negative"},
		{"concurrency", upstream.Config{URL: "http://h", Concurrency: -1}, "the repository's concurrency must not be negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := upstream.NewClient(tt.cfg)
			if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != tt.want {
				t.Errorf("%v with code %q", err, core.CodeOf(err))
			}
		})
	}
}

// TestClientSegments: any id stays one segment of the path and arrives unchanged.
func TestClientSegments(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI }))
	defer server.Close()
	client, err := upstream.NewClient(upstream.Config{URL: server.URL + "/ba%2Fse/"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := t.Context()
	check := func(t rapid.TB, id string) {
		t.Helper()
		answer, err := client.Get(ctx, "", "studies", id, "analysis")
		if err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		answer.Close()
		raw := <-seen
		segments := strings.Split(raw, "/")
		if len(segments) != 5 || segments[1] != "ba%2Fse" || segments[2] != "studies" || segments[4] != "analysis" {
			t.Fatalf("%q went to %s", id, raw)
		}
		if got, err := url.PathUnescape(segments[3]); err != nil || got != id {
			t.Errorf("%q arrived as %q (%v)", id, got, err)
		}
	}
	for _, id := range []string{
		"../..", "..%2F", "a/b", "%", "%2e%2e", "?x=1", "#f", "a b", "a+b", "😀", "...", ".a", ";v=1", "a\\b", "//", "\x00\n", "é", "a:b", "*",
	} {
		check(t, id)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Filter(func(s string) bool { return s != "" && s != "." && s != ".." }).Draw(t, "id")
		check(t, id)
	})
	for _, id := range []string{"", ".", ".."} {
		if _, err := client.Get(t.Context(), "", "studies", id); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestClientRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header   string
		from, to time.Duration
	}{
		"seconds":       {"7", 7 * time.Second, 7 * time.Second},
		"date":          {time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), 50 * time.Second, time.Minute},
		"passed":        {"Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"none":          {"", 0, 0},
		"negative":      {"-5", 0, 0},
		"nonsense":      {"soon", 0, 0},
		"out of bounds": {"9999999999", 24 * time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.header)
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			defer server.Close()
			client, err := upstream.NewClient(upstream.Config{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.Get(t.Context(), "", "x")
			if got := core.RetryAfterOf(err); got < tt.from || got > tt.to || core.CodeOf(err) != core.CodeOverloaded || !errors.Is(err, core.ErrRateLimited) {
				t.Errorf("%v after %v", err, got)
			}
		})
	}
}

// TestClientAsksTooMuch: only 413 says that less may be returned.
func TestClientAsksTooMuch(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 413, 414, 429, 500, 503, 504} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer server.Close()
		client, err := upstream.NewClient(upstream.Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		_, err = client.Get(t.Context(), "", "x")
		if errors.Is(err, core.ErrAskedTooMuch) != (status == http.StatusRequestEntityTooLarge) || errors.Is(err, core.ErrRateLimited) != (status == http.StatusTooManyRequests) {
			t.Errorf("%d: %v", status, err)
		}
	}
}
