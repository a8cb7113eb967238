package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestCatalogueBasePath: behind a proxy every path has its prefix.
func TestCatalogueBasePath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, settings{configuration: func(w *world) string {
		return strings.Replace(built(w.engine.url(), dir)(w), "server: {", `server: {basePath: "/search/api", `, 1)
	}})
	folder{"a/base.json": based("a", aliasWord, ""), "b/base.json": `{`}.write(w, dir)
	w.start()
	w.awaitAvailable("a")
	a := w.summary()
	if a.get("sqonSchemaPath").String() != "/search/api/introspection/sqon" ||
		a.get("catalogs.a.paths").Raw != `{"graphql":"/search/api/a/graphql","introspection":"/search/api/introspection/a"}` {
		t.Errorf("the summary is %s", a.raw)
	}
	if got := w.mustRequest(http.MethodPost, "/b/graphql", http.StatusNotFound).get("details").String(); got != "/search/api/introspection/b" {
		t.Errorf("details is %q", got)
	}
}

// TestCatalogueDefaults: without a folder each index that is written to has a catalogue, called as its alias; one whose
// alias is a route's name is listed as failed, and its repository is indexed.
func TestCatalogueDefaults(t *testing.T) {
	t.Parallel()
	lyric, err := testkit.NewLyric(testkit.LyricConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lyric.Close)
	w := newWorld(t, settings{})
	local := w.alias + "-local"
	w.set.more = fmt.Sprintf("  - {code: %s, type: lyric, url: %q, indexName: %s, lyric: {categoryId: \"1\"}}\n"+
		"  - {code: %s, type: local, indexName: %s}\n",
		tabularCode, lyric.URL(), w.records(), builtInCode, local)
	w.dropAtEnd(w.records())
	w.dropAtEnd(local)
	w.start()
	want := map[string]string{w.alias: "analysis", w.records(): "record", local: "analysis"}
	got := map[string]string{}
	for id, entry := range w.catalogs() {
		got[id] = entry.DocumentType
		w.awaitAvailable(id)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the default catalogues (-want +got):\n%s", diff)
	}
	w.wantStatus(core.CataloguesHealthy)
	if f := w.fields(w.records())["systemId"]; f.Type != "keyword" {
		t.Errorf("systemId is %+v", f)
	}
	if got := w.mustRequest(http.MethodGet, "/introspection/record", http.StatusOK).get("catalogId").String(); got != w.records() {
		t.Errorf("the document type record leads to %q", got)
	}
	if a := w.mustRequest(http.MethodGet, "/introspection/analysis", http.StatusConflict); a.get("matchingCatalogueIds.#").Int() != 2 {
		t.Errorf("the document type of two: %s", a.raw)
	}
}

// TestCatalogueDefaultCalledAsRoute: an alias that is a route's name.
func TestCatalogueDefaultCalledAsRoute(t *testing.T) {
	t.Parallel()
	b := newBuiltIn(t, plan{})
	b.alias = "jobs"
	b.start()
	b.eventually(wait, func() (bool, string) {
		a := b.ready()
		return len(a.get("paused").Array()) == 0, string(a.raw)
	})
	b.prepareStudies("S1")
	want := notBuilt(`"jobs" cannot be the id of a catalogue, because it is the name of a server route: configure a folder of catalogues with another catalogId for this index`)
	entry := b.catalogs()["jobs"]
	if entry.Status != "failed" || entry.Error == nil || *entry.Error != want || entry.DocumentType != "analysis" {
		t.Errorf("it is listed as %+v", entry)
	}
	if got, payload := string(b.detail("jobs").raw), (failedCatalogue{"analysis", "", want}).failedPayload("jobs"); got != payload {
		t.Errorf("its detail is %s, want %s", got, payload)
	}
	b.wantStatus(core.CataloguesUnhealthy)
	b.publish("S1", b.submit("S1"))
	b.awaitConverged()
	b.runLocal("", "", core.JobSucceeded)
	if a := b.mustSend(http.MethodGet, "/jobs", "", http.StatusOK); a.get("jobs.#").Int() != 1 {
		t.Errorf("the route that it is called as: %s", a.raw)
	}
}
