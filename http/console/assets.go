package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"

	"tutti/http/api"
	"tutti/internal/core"
)

//go:embed assets/*.css assets/*.js assets/*.svg assets/vendor/*.js.gz assets/vendor/*.css
var assetFiles embed.FS

// asset is one file that pages load.
type asset struct {
	contentType string
	content     []byte
	tag         string
}

// assets are the files that pages load, by name.
type assets map[string]asset

func loadAssets() (assets, error) {
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all := assets{}
	err := fs.WalkDir(assetFiles, "assets", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(file)
		if err != nil {
			return err
		}
		if packed, is := strings.CutSuffix(file, ".gz"); is {
			if content, err = unpack(content); err != nil {
				return err
			}
			file = packed
		}
		all[path.Base(file)] = asset{contentType: types[path.Ext(file)], content: content, tag: api.WeakTag(content)}
		return nil
	})
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "reading the files of the console", err)
	}
	return all, nil
}

func unpack(content []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// serve handles /console/assets/{asset}. Clients revalidate each time: the names stay the same when a new version changes the content.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	found, ok := a[chi.URLParam(r, "asset")]
	if !ok {
		api.Fail(w, r, core.NewError(core.CodeNotFound, "this file of the console does not exist"))
		return
	}
	header := w.Header()
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if strings.HasPrefix(found.contentType, "image/svg") {
		header.Set("Content-Security-Policy", "default-src 'none'")
	}
	if !api.NotModified(w, r, found.tag) {
		api.WriteWhole(w, http.StatusOK, found.contentType, found.content)
	}
}
