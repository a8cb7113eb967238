package search_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// FuzzSearchBody: whatever is sent, either something is made of it that is JSON throughout, or it is refused in words.
func FuzzSearchBody(f *testing.F) {
	for _, body := range []string{
		apitest.Typename, files, formOf(files), "", "[]", "{", `{"query":7}`, `{"params":"{}"}`, `{"params":{"params":[]}}`, "params=%7B%7D&params", "\xff",
		`{"query":"{a}","variables":{"a":{}}}`, `{"query":"","query":""}`, "params={}&a=%zz",
	} {
		f.Add(body, "application/json")
		f.Add(body, form)
	}
	p := apitest.Working()
	p.Catalogues.Put(apitest.Plain("C"))
	var got *json.RawMessage
	p.Searches.ExecuteFn = func(_ context.Context, _ string, _ core.Principal, r core.GraphQLRequest) (core.GraphQLResponse, error) {
		got = &r.Variables
		if r.Query == "" || r.ReadOnly || !utf8.ValidString(r.Query+r.OperationName) {
			return core.GraphQLResponse{}, core.NewError(core.CodeInternal, "no operation")
		}
		return core.GraphQLResponse{Body: []byte(apitest.Answered)}, nil
	}
	download := p.Searches.DownloadFn
	p.Searches.DownloadFn = func(ctx context.Context, id string, who core.Principal, r core.DownloadRequest, begin core.BeginDownload) error {
		got = &r.Params
		return download(ctx, id, who, r, begin)
	}
	h := apitest.NewHandler(f, p, api.Config{MaxBodyBytes: 1 << 10})
	f.Fuzz(func(t *testing.T, body, contentType string) {
		for _, target := range []string{"/graphql", "/download"} {
			got = nil
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK:
				if got == nil || len(*got) > 0 && (!json.Valid(*got) || strings.TrimLeft(string(*got), " \t\r\n")[0] != '{') {
					t.Fatalf("%s %q: passed on %v", target, body, got)
				}
			case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
				if got != nil || !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/problem+json" {
					t.Fatalf("%s %q: got %d %s", target, body, w.Code, w.Body)
				}
			default:
				t.Fatalf("%s %q: got %d %s", target, body, w.Code, w.Body)
			}
		}
	})
}
