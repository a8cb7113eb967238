package metadata_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tutti/http/api"
	"tutti/internal/tools/apitest"
)

// FuzzMetadataQuery: whatever stands in a query, the answer is the list or says what is wrong.
func FuzzMetadataQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=5&offset=10", "names=a,b&names=c", "versions=1,,2", "sort=NAME&sortOrder=up", "hideSchema=1&unrenderedOnly=x",
		"analysisStates=PUBLISHED,SUPPRESSED", "limit=%zz", "limit=%00", "limit=99999999999999999999", "a;b",
	} {
		f.Add(seed)
	}
	h := apitest.NewHandler(f, apitest.Working(), api.Config{})
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/schemas", "/schemas/a", "/studies/S/analysis", "/studies/S/analysis/paginated"} {
			r := &http.Request{Method: "GET", Header: http.Header{}, Host: "localhost"}
			r.URL = httptest.NewRequest("GET", path, nil).URL
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(t.Context()))
			if w.Code != 200 && w.Code != 400 {
				t.Errorf("%s?%s: %d %s", path, query, w.Code, w.Body)
			}
		}
	})
}

// FuzzMetadataBody: whatever is sent, the answer is what was made or says what is wrong.
func FuzzMetadataBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","scopes":["S.READ"],"expiresAt":"2027-01-01T00:00:00Z"}`, `{"studyId":"S","info":{}}`, `[]`, `null`, `{`,
		`{"name":"` + "\xff" + `"}`, `{"name":"\ud800"}`,
	} {
		f.Add(seed)
	}
	h := apitest.NewHandler(f, apitest.Working(), api.Config{})
	f.Fuzz(func(t *testing.T, sent string) {
		for _, path := range []string{"/studies/S", "/keys"} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, io.NopCloser(strings.NewReader(sent)))
			r.Host = "localhost"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 200 && w.Code != 400 && w.Code != 409 {
				t.Errorf("%s %q: %d %s", path, sent, w.Code, w.Body)
			}
		}
	})
}
