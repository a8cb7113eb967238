package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/http/api"
)

// TestDocument: a row of the table opens its document, with numbers as they are stored; the caller's own filters apply, because it is a download.
func TestDocument(t *testing.T) {
	w := newWorld()
	w.file = `{"repositories":[{"code":"song.ca"}],"n":12345678901234567891,"price":1.10,"name":"<b>Ann</b>","none":null,"list":[],"empty":"","visits":[{"id":"v1"},{"id":"v2"}],"ok":true}` + "\n"
	got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/document?id=d*1%2F%C3%A9"})
	body := got.Body.String()
	if got.Code != http.StatusOK {
		t.Fatalf("status %d: %s", got.Code, body)
	}
	checkPage(t, "", got.Header(), body)
	if sqon := gjson.GetBytes(w.params, "sqon.content.0.content").Raw; sqon != `{"fieldName":"_id","value":["d\\*1/é"]}` {
		t.Errorf("the filter is %s", sqon)
	}
	for _, says := range []string{
		`<span class="value number">12345678901234567891</span>`, `<span class="value number">1.10</span>`, "&lt;b&gt;Ann&lt;/b&gt;", `<span class="value null">null</span>`,
		"no elements", "empty text", "2 elements", `<span class="key">ok</span> <span class="value boolean">true</span>`,
		`href="/console/records?id=d%2a1%2f%c3%a9"`, `data-copy="the-document"`, "&#34;n&#34;: 12345678901234567891",
	} {
		if !strings.Contains(body, says) {
			t.Errorf("the page lacks %s: %s", says, body)
		}
	}
}

// TestDocumentBounds: of a long document the first values are shown, a huge one can be downloaded, and one that the caller does not find is
// said to be missing.
func TestDocumentBounds(t *testing.T) {
	for what, c := range map[string]struct {
		path, file string
		status     int
		says       string
	}{
		"long":       {"document?id=d1", `{"a":[` + strings.Repeat("1,", 3000) + `2]}`, http.StatusOK, "Only the first values are shown"},
		"huge":       {"document?id=d1", `{"a":"` + strings.Repeat("x", 2<<20) + `"}`, http.StatusOK, "too large for a page"},
		"missing":    {"document?id=d1", "\n", http.StatusNotFound, "it may have been removed from the index since the page before"},
		"without id": {"document", "{}", http.StatusBadRequest, "open a document from the table of the catalogue"},
	} {
		w := newWorld()
		w.file = c.file
		got := send(t, router(t, w, api.Config{}), request{method: "GET", path: "/console/catalogues/donors/" + c.path, header: http.Header{"Accept": {acceptPage}}})
		if body := got.Body.String(); got.Code != c.status || !strings.Contains(body, c.says) || strings.Count(body, "<li>") > 2100 {
			t.Errorf("%s: status %d, %s values: %.1000s", what, got.Code, strconv.Itoa(strings.Count(body, "<li>")), body)
		}
	}
}
