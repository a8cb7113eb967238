package system

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/http/api"
	"tutti/internal/core"
)

const (
	pathDocs        = "/api-docs"
	contentTypeHTML = "text/html; charset=utf-8"
	// docsPolicy is the Content-Security-Policy of the page: scripts, styles, images and requests of this server only,
	// nothing inline, no eval, no framing. Swagger UI's style sheet embeds its icons as data: URLs.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

//go:embed apidocs/*.html apidocs/*.css apidocs/*.js apidocs/vendor/*.gz apidocs/vendor/*.png
var docsPage embed.FS

// docsAsset is one file of /api-docs.
type docsAsset struct {
	contentType string
	// content is compressed when zipped is set.
	content []byte
	zipped  bool
	tag     string
}

// docs are the files of /api-docs by name.
type docs map[string]docsAsset

// loadDocs returns the page and its assets by name. Swagger UI's files are copies: packages of Go with them have inline scripts, which the
// policy forbids, and twice as many bytes.
func loadDocs() (docs, error) {
	assets := docs{}
	for _, a := range [][2]string{
		{"index.html", contentTypeHTML},
		{"page.css", "text/css; charset=utf-8"},
		{"page.js", "text/javascript; charset=utf-8"},
		{"vendor/swagger-ui.css.gz", "text/css; charset=utf-8"},
		{"vendor/swagger-ui-bundle.js.gz", "text/javascript; charset=utf-8"},
		{"vendor/favicon-16x16.png", "image/png"},
		{"vendor/favicon-32x32.png", "image/png"},
	} {
		content, err := docsPage.ReadFile("apidocs/" + a[0])
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "reading the pages of /api-docs", err)
		}
		name, zipped := strings.CutSuffix(path.Base(a[0]), ".gz")
		assets[name] = docsAsset{
			contentType: a[1], content: content, zipped: zipped, tag: api.WeakTag(content),
		}
	}
	return assets, nil
}

// register adds the routes of /api-docs and its assets.
func (d docs) register(r *api.Router) {
	r.Redirect(redirectToDocs(r.BasePath()))
	r.HandleMedia(http.MethodGet, pathDocs, []string{"text/html"}, d.servePage, api.StrictParams(), api.Open())
	r.HandleMedia(http.MethodGet, pathDocs+"/{asset}", []string{"text/css", "text/javascript", "image/png"},
		d.serveAsset, api.StrictParams(), api.Open())
}

// redirectToDocs redirects /api-docs/, which other services use, to the page.
func redirectToDocs(basePath string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !safe || r.URL.EscapedPath() != basePath+pathDocs+"/" {
			return false
		}
		// Relative, so that it holds behind a proxy that adds a prefix.
		w.Header().Set("Location", ".."+pathDocs)
		w.WriteHeader(http.StatusPermanentRedirect)
		return true
	}
}

// servePage answers GET /api-docs with Swagger UI for this server's own OpenAPI document.
func (d docs) servePage(w http.ResponseWriter, r *http.Request) error {
	return d.serve(w, r, "index.html")
}

// serveAsset answers GET /api-docs/{asset}.
func (d docs) serveAsset(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "asset")
	if _, ok := d[name]; !ok || name == "index.html" {
		return core.NewError(core.CodeNotFound, "this part of /api-docs does not exist")
	}
	return d.serve(w, r, name)
}

func (d docs) serve(w http.ResponseWriter, r *http.Request, name string) error {
	asset := d[name]
	header := w.Header()
	header.Set("Content-Security-Policy", docsPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Add("Vary", "Accept-Encoding")
	// Clients revalidate each time: the names stay the same when a new version changes the content.
	if api.NotModified(w, r, asset.tag) {
		return nil
	}
	content := asset.content
	if asset.zipped {
		if acceptsGzip(r.Header.Values("Accept-Encoding")) {
			header.Set("Content-Encoding", "gzip")
		} else {
			var err error
			if content, err = unzip(content); err != nil {
				return core.WrapError(core.CodeInternal, "an internal error occurred", err)
			}
		}
	}
	header.Set("Content-Type", asset.contentType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	_ = api.WriteChunks(w, content)
	return nil
}

// acceptsGzip reports whether Accept-Encoding allows gzip, by name or by * (RFC 9110, 12.5.3).
func acceptsGzip(acceptEncoding []string) bool {
	accepted, named := false, false
	for part := range strings.SplitSeq(strings.Join(acceptEncoding, ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && (coding != "*" || named) {
			continue
		}
		named = coding == "gzip"
		weight, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
		q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		accepted = !ok || err == nil && q > 0
	}
	return accepted
}

func unzip(content []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("unpacking a part of /api-docs: %w", err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpacking a part of /api-docs: %w", err)
	}
	return plain, nil
}
