package app_test

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestQueryPageExample: the query that the page of a catalogue begins with, and the introspection that its script sends, succeed.
func TestQueryPageExample(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{})
	b.startReady()
	b.prepareStudies("S1")
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
	b.awaitAvailable(b.alias)
	b.awaitField(b.alias, "studyId", "keyword")
	if err := b.app.Index().Refresh(t.Context(), b.alias); err != nil {
		t.Fatal(err)
	}
	read := func(path, accept string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.app.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	page := read("/"+b.alias+"/graphql", "text/html,*/*;q=0.8")
	found := regexp.MustCompile(`(?s)<textarea id="query"[^>]*>(.*?)</textarea>`).FindStringSubmatch(page)
	endpoint := regexp.MustCompile(`data-endpoint="([^"]*)"`).FindStringSubmatch(page)
	if found == nil || endpoint == nil {
		t.Fatalf("no page: %s", page)
	}
	example := html.UnescapeString(found[1])
	sent := graphql("", example, `{"filters":{}}`)
	if got := b.mustSend("POST", endpoint[1], sent.body, http.StatusOK); got.get("errors").Exists() || got.get("data.analysis.hits.total").Int() != 1 {
		t.Errorf("%s\n%s", example, got.raw)
	}

	script := read("/console/assets/query.js", "*/*")
	parts := regexp.MustCompile("(?s)typeShape = \"(.*?)\";.*?values = `(.*?)`;.*?introspection = `(.*?)` \\+\\s*`(.*?)`;").FindStringSubmatch(script)
	if parts == nil {
		t.Fatal("the script has no introspection")
	}
	values := strings.ReplaceAll(parts[2], "${typeShape}", parts[1])
	sent = graphql("", strings.ReplaceAll(parts[3]+parts[4], "${values}", values), "")
	if got := b.mustSend("POST", endpoint[1], sent.body, http.StatusOK); got.get("errors").Exists() || got.get("data.__schema.types.#").Int() < 10 {
		t.Errorf("%.500s", got.raw)
	}
}
