package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// twenty are as many catalogues, each of an index of its own.
func twenty() folder {
	files := folder{}
	for i := range 20 {
		files[fmt.Sprintf("c%02d/base.json", i)] = based(fmt.Sprintf("d%02d", i), fmt.Sprintf("none-%02d", i), "")
	}
	return files
}

// TestCatalogueStart: a tutti starts without its engine, and every catalogue is listed. How long the start waits for
// catalogues at most, the tests of internal/search/catalogue check with a fake clock.
func TestCatalogueStart(t *testing.T) {
	for name, engine := range map[string]func(*testing.T) string{"refused": func(t *testing.T) string { return "http://" + testkit.NewAddress(t) }, "silent": silentAddress} {
		t.Run(name, func(t *testing.T) {
			b := newBuilt(t, engine(t), twenty())
			b.start()
			entries := b.catalogs()
			if len(entries) != 20 {
				t.Errorf("%d catalogues are listed", len(entries))
			}
			for id, entry := range entries {
				if entry.Error == nil || entry.Error.Code != core.CatalogueConnectionError {
					t.Errorf("%s is %+v", id, entry)
				}
			}
			b.wantStatus(core.CataloguesUnhealthy)
			b.prepareStudies("S1")
			b.publish("S1", b.submit("S1"))
			b.mustSend(http.MethodPost, "/index/repository/"+builtInCode, "", http.StatusAccepted)
			b.mustSend(http.MethodPost, "/c00/graphql", `{"query":"{__typename}"}`, http.StatusNotFound)
		})
	}
}

// TestCatalogueDownAtStart: without its engine a tutti starts, each catalogue has connection_error, and triggers are accepted; they are
// done once the engine is up.
func TestCatalogueDownAtStart(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{faulty: true}, folder{
		"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord, ""),
	})
	ids := w.fill("S1", 20)
	w.engine.setDown(true)
	w.start()
	w.wantStatus(core.CataloguesUnhealthy)
	for _, id := range []string{"a", "b"} {
		if p := w.problemOf(id); p == nil || p.Code != core.CatalogueConnectionError {
			t.Errorf("%s: %+v", id, p)
		}
	}
	for _, id := range ids {
		w.trigger("S1", id)
	}
	w.engine.setDown(false)
	w.awaitAvailable("a", "b")
	w.awaitPaused(false)
	w.awaitConverged(wait)
}
