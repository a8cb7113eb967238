package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
)

// awaitListed waits until a catalogue is listed, or is not.
func (w *world) awaitListed(id string, listed bool) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		_, is := w.catalogs()[id]
		return is == listed, string(w.summary().raw)
	})
}

// TestCatalogueFixed: an error in a folder can be fixed while tutti runs; the catalogue then is what it says it is,
// and a valid one does not change with its folder.
func TestCatalogueFixed(t *testing.T) {
	t.Parallel()
	w, dir := newCatalogued(t, settings{}, folder{
		"sound/base.json":     based("sound", aliasWord, `"description":"As it was"`),
		"broken/base.json":    `{"documentType":`,
		"empty/":              "",
		"lost+found/":         "",
		"one/base.json":       based("one", aliasWord, `"catalogId":"same"`),
		"other/base.json":     based("other", aliasWord, `"catalogId":"same"`),
		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ"`,
	})
	w.start()
	w.awaitAvailable("sound")
	w.wantGauge(map[string]bool{"sound": true, "broken": false, "empty": false, "one": false, "other": false, "guarded": false})

	// Another error replaces the first.
	folder{"broken/base.json": `{"documentType":"fixed"}`}.write(w, dir)
	w.awaitProblem("broken", notBuilt("broken/base.json does not set esIndex"))
	folder{
		"broken/base.json":    based("fixed", aliasWord, `"catalogId":"fixed"`),
		"empty/base.json":     based("filled", aliasWord+"-none", ""),
		"other/base.json":     based("other", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ"}`,
		"sound/base.json":     `{`,
	}.write(w, dir)
	w.awaitListed("fixed", true)
	w.awaitListed("same", true)
	w.awaitAvailable("fixed", "same", "other", "guarded", "sound")
	w.awaitProblem("empty", indexMissing(w.alias+"-none"))
	w.awaitListed("broken", false)
	w.awaitListed("one", false)
	w.mustRequest(http.MethodPost, "/broken/graphql", http.StatusNotFound)
	w.wantGauge(map[string]bool{"sound": true, "fixed": true, "empty": false, "same": true, "other": true, "guarded": true})
	w.wantStatus(core.CataloguesDegraded)
	if got := w.detail("guarded").get("meta.authFiltered").Raw; got != "true" {
		t.Errorf("authFiltered of the one with a rule is %s", got)
	}
	if got := w.detail("sound").get("description").String(); got != "As it was" {
		t.Errorf("the sound one is described as %q", got)
	}
	if n := w.logged(saysAvailable, "sound"); n != 1 {
		t.Errorf("that the sound one is available is logged %d times", n)
	}

	// A sound one follows its folder too: what is wrong with it is said by /ready, a sound change is taken up.
	w.eventually(wait, func() (bool, string) {
		said := w.ready().get("reasons").String()
		return strings.Contains(said, "catalogue sound: a change of its folder is not taken up: sound/base.json is not valid JSON"), said
	})
	folder{"sound/base.json": based("sound", aliasWord, `"description":"As it is"`)}.write(w, dir)
	w.eventually(wait, func() (bool, string) {
		a := w.detail("sound")
		return a.get("description").String() == "As it is", string(a.raw)
	})
	for _, name := range []string{"broken", "sound"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitListed("sound", false)
	w.awaitListed("fixed", false)
	w.put("S1", "a", `"experiment":{"weight":1.5}`)
	w.trigger("S1", "a")
	w.awaitField("same", "experiment.weight", "double")
	odd := slices.DeleteFunc(w.logs.all(), func(line string) bool { return !strings.Contains(line, "lost+found") })
	if len(odd) != 1 {
		t.Errorf("what is odd about the folder is logged %d times: %s", len(odd), odd)
	}
}
