package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/tools/apitest"
)

var (
	// linked finds what a page makes a browser load or lead to.
	linked = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	// inline finds what the policy would refuse: scripts and styles within the page, and handlers.
	inline = regexp.MustCompile(`<script>|<style|\son[a-z]+=|style=|javascript:`)
)

// TestDocsPageLoadsFromThisServerAlone follows every address of the page under any base path.
func TestDocsPageLoadsFromThisServerAlone(t *testing.T) {
	for _, base := range []string{"", "/base/path"} {
		h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: base})
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + "/api-docs", Header: http.Header{"Accept": {"text/html"}}})
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
		}
		for directive, want := range map[string]string{
			"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
			"img-src": "'self' data:", "frame-ancestors": "'none'", "base-uri": "'none'", "form-action": "'none'",
		} {
			if !strings.Contains("; "+res.Header.Get("Content-Security-Policy")+";", "; "+directive+" "+want+";") {
				t.Errorf("%s is not %s in %s", directive, want, res.Header.Get("Content-Security-Policy"))
			}
		}
		if found := inline.FindAll(body, -1); found != nil || bytes.Contains(body, []byte("//")) {
			t.Errorf("inline %q, or another host, in %s", found, body)
		}
		links := linked.FindAllSubmatch(body, -1)
		console := slices.IndexFunc(links, func(link [][]byte) bool { return string(link[1]) == "." }) // whose page is another surface's
		if len(links) != 8 || console < 0 {
			t.Errorf("%d links in %s", len(links), body)
		}
		for _, link := range slices.Delete(links, console, console+1) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + "/" + string(link[1])})
			if res.StatusCode != 200 || len(body) == 0 {
				t.Errorf("%s: got %d, %d bytes", link[1], res.StatusCode, len(body))
			}
		}
	}
}

func TestDocsAssets(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for name, tt := range map[string]struct {
		contentType string
		zipped      bool
		begins      string
	}{
		"page.js":              {"text/javascript; charset=utf-8", false, "// Shows the OpenAPI document"},
		"page.css":             {"text/css; charset=utf-8", false, "body {"},
		"swagger-ui.css":       {"text/css; charset=utf-8", true, ".swagger-ui"},
		"swagger-ui-bundle.js": {"text/javascript; charset=utf-8", true, "/*! For license information"},
		"favicon-16x16.png":    {"image/png", false, "\x89PNG"},
		"favicon-32x32.png":    {"image/png", false, "\x89PNG"},
	} {
		t.Run(name, func(t *testing.T) {
			a := apitest.Ask{Method: "GET", Target: "/api-docs/" + name}
			res, plain := apitest.Do(t, h, a)
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != tt.contentType || res.Header.Get("Content-Encoding") != "" {
				t.Errorf("got %d, %v", res.StatusCode, res.Header)
			}
			if !strings.HasPrefix(string(plain), tt.begins) {
				t.Errorf("begins with %.40q", plain)
			}
			tag := res.Header.Get("ETag")

			a.Header = http.Header{"Accept-Encoding": {"br, gzip"}, "Accept": {"text/css,*/*;q=0.1"}}
			s := apitest.Open(t, h, "GET", a.Target, a.Header)
			<-s.Done
			zipped := s.W.Header().Get("Content-Encoding") == "gzip"
			if got := unzipped(t, s.W.Body, zipped); zipped != tt.zipped || !bytes.Equal(got, plain) {
				t.Errorf("compressed: %t, %d bytes, %d plain", zipped, len(got), len(plain))
			}
			if s.W.Header().Get("ETag") != tag || !strings.Contains(s.W.Header().Get("Vary"), "Accept-Encoding") {
				t.Errorf("got %v", s.W.Header())
			}

			a.Header = http.Header{"If-None-Match": {tag}}
			if res, body := apitest.Do(t, h, a); res.StatusCode != 304 || len(body) > 0 || res.Header.Get("ETag") != tag {
				t.Errorf("known: got %d, %d bytes", res.StatusCode, len(body))
			}
			a.Header = http.Header{"If-None-Match": {`"another"`}}
			if res, _ := apitest.Do(t, h, a); res.StatusCode != 200 {
				t.Errorf("another known: got %d", res.StatusCode)
			}
		})
	}
}

func unzipped(t *testing.T, body *bytes.Buffer, zipped bool) []byte {
	t.Helper()
	if !zipped {
		return body.Bytes()
	}
	reader, err := gzip.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestDocsAreCompressedForWhoTakesIt(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	for accept, zipped := range map[string]bool{
		"": false, "identity": false, "br": false, "gzip": true, "GZIP": true, "deflate, gzip;q=1.0": true, "*": true,
		"gzip;q=0": false, "gzip; q=0.0, *": false, "*, gzip;q=0": false, "*;q=0, gzip": true, "*;q=0": false, "gzip;q=x": false,
		"xgzip": false,
	} {
		t.Run(accept, func(t *testing.T) {
			s := apitest.Open(t, h, "GET", "/api-docs/swagger-ui.css", http.Header{"Accept-Encoding": {accept}})
			<-s.Done
			if got := s.W.Header().Get("Content-Encoding") == "gzip"; got != zipped || s.W.Code != 200 {
				t.Errorf("got %d, compressed: %t", s.W.Code, got)
			}
		})
	}
}

func TestDocsKnownTags(t *testing.T) {
	h := apitest.NewHandler(t, apitest.Working(), api.Config{})
	res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/api-docs"})
	tag := res.Header.Get("ETag")
	for given, status := range map[string]int{
		"": 200, "*": 304, tag: 304, `"x", ` + tag: 304, strings.TrimPrefix(tag, "W/"): 304, `"x"`: 200, strings.Trim(tag, `W/"`): 200,
	} {
		if res, _ := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/api-docs", Header: http.Header{"If-None-Match": {given}}}); res.StatusCode != status {
			t.Errorf("%s: got %d", given, res.StatusCode)
		}
	}
}

func TestDocsRefuse(t *testing.T) {
	for _, base := range []string{"", "/base"} {
		h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: base})
		for _, name := range []string{"none.js", "index.html", "swagger-ui.js", "..%2Fopenapi.json", "%2E%2E", "swagger-ui.css.gz", "embed.go", "page.js%00"} {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + "/api-docs/" + name})
			apitest.WantProblem(t, res, body, 404, "not_found", "does not exist")
		}
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + "/api-docs/page.js/x"})
		apitest.WantProblem(t, res, body, 404, "not_found", "no resource has this path")
		res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: base + "/api-docs", Header: http.Header{"Accept": {"application/json"}}})
		apitest.WantProblem(t, res, body, 406, "not_acceptable", "text/html")
	}
}

// TestDocsAreFoundWithASlash: /api-docs/ is where other services have theirs.
func TestDocsAreFoundWithASlash(t *testing.T) {
	for _, base := range []string{"", "/base"} {
		h := apitest.NewHandler(t, apitest.Working(), api.Config{BasePath: base})
		for _, method := range []string{"GET", "HEAD"} {
			s := apitest.Open(t, h, method, base+"/api-docs/", nil)
			<-s.Done
			res := s.W.Result()
			res.Request = newRequest(t, "http://localhost"+base+"/api-docs/")
			if to, err := res.Location(); s.W.Code != 308 || err != nil || to.Path != base+"/api-docs" {
				t.Errorf("%s: got %d to %v, %v", method, s.W.Code, to, err)
			}
		}
		res, body := apitest.Do(t, h, apitest.Ask{Method: "POST", Target: base + "/api-docs/"})
		if res.StatusCode < 400 {
			t.Errorf("POST: got %d %s", res.StatusCode, body)
		}
	}
}

func newRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
