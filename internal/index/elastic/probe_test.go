package elastic_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/elastic"
)

// TestProbe: answers of a node are returned whatever their status, unless they are too long, and names are escaped.
func TestProbe(t *testing.T) {
	var asked, body string
	url := listening(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.RequestURI
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = w.Write([]byte(body))
	})
	p, err := elastic.NewProbe(elastic.Connection{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	const name = "é[%41"
	for want, ask := range map[string]func(context.Context) (elastic.Response, error){
		"GET /_nodes/_local/http?filter_path=cluster_name%2Cnodes.%2A.version": func(ctx context.Context) (elastic.Response, error) {
			id, err := p.Identify(ctx)
			return id.Response, err
		},
		"GET /_cluster/health?timeout=1000ms": p.Health,
		"GET /_license":                       p.License,
		"GET /%C3%A9%5B%2541/_alias": func(ctx context.Context) (elastic.Response, error) {
			response, _, _, err := p.Alias(ctx, name)
			return response, err
		},
		"POST /_security/user/_has_privileges": func(ctx context.Context) (elastic.Response, error) {
			return p.Privileges(ctx, []byte(`{}`))
		},
		"POST /%C3%A9%5B%2541/_count": func(ctx context.Context) (elastic.Response, error) { return p.Count(ctx, name, []byte(`{}`)) },
	} {
		body = `{"said":true}`
		got, err := ask(t.Context())
		if got.Status != http.StatusMethodNotAllowed || got.Header.Get("X-Elastic-Product") != "Elasticsearch" || string(got.Body) != body || err != nil {
			t.Errorf("%s: got %+v, %v", want, got, err)
		}
		if asked != want {
			t.Errorf("asked %s, want %s", asked, want)
		}
	}
	body = strings.Repeat(" ", 1<<20+1)
	_, err = p.Identify(t.Context())
	wantError(t, err, core.CodeUnavailable, "the response of the index is incomplete")
}
