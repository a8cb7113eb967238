//go:build services

package elastic_test

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"tutti/internal/index"
	"tutti/internal/tools/indextest"
)

// TestConformanceSigned runs the suite with signed requests, which the engine sees only if their signatures are right.
func TestConformanceSigned(t *testing.T) {
	isolateCredentials(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "KEY")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s := &signature{region: "eu-west-1", service: "es"}
	s.set("KEY", "secret", "")
	engine, err := url.Parse(environment(t, "TUTTI_TEST_ELASTICSEARCH_URL"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(engine)
		r.Out.Header.Del("Authorization")
	}}
	server := signedEngine(t, s, http.Handler(proxy))
	indextest.Run(t, func(t *testing.T) index.Index {
		return tidy{Index: openSigned(t, server.URL, "es", false), t: t, once: new(sync.Map)}
	}, indexDialect(t))
}
