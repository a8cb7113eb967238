package app_test

import (
	"net/http"
	"testing"

	"tutti/internal/core"
)

// TestCatalogueGrows: fields of new documents appear, with a new generatedAt and ETag.
func TestCatalogueGrows(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{
		"a/base.json": based("a", aliasWord, `"extended":[{"fieldName":"experiment.weight","displayName":"Weight","unit":"kg"}]`),
	})
	w.start()
	w.awaitAvailable("a")
	before, failed := w.detail("a"), w.logged(saysFailed, "a") // whether it was checked before its index existed
	if _, is := w.fields("a")["experiment.weight"]; is {
		t.Fatal("the field exists already")
	}
	w.put("S1", "first", `"experiment":{"weight":1.5,"visits":[{"at":"2024-05-01"}]}`)
	w.trigger("S1", "first")
	w.awaitField("a", "experiment.weight", "double")
	fields := w.fields("a")
	if got := fields["experiment.weight"]; got.DisplayName != "Weight" || got.Unit != "kg" {
		t.Errorf("the field is shown as %+v", got)
	}
	if fields["experiment.visits"].Type != "nested" || fields["experiment.visits.at"].Type != "keyword" {
		t.Errorf("the list is shown as %+v and %+v", fields["experiment.visits"], fields["experiment.visits.at"])
	}
	after := w.detail("a")
	if before.header.Get("ETag") == after.header.Get("ETag") || after.header.Get("ETag") == "" {
		t.Errorf("the tags are %q and %q", before.header.Get("ETag"), after.header.Get("ETag"))
	}
	if before.get("operators.double").Exists() || !after.get("operators.double").Exists() {
		t.Errorf("operators were %s and are %s", before.get("operators").Raw, after.get("operators").Raw)
	}
	if n := w.logged(saysFailed, "a"); n != failed {
		t.Errorf("that it has failed is logged %d times, want %d", n, failed)
	}
	w.awaitConverged(wait)
}

// TestCatalogueEngineGoes: the catalogues of an engine that goes down fail after a while, and are available when it is back; what was
// triggered before is indexed.
func TestCatalogueEngineGoes(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{faulty: true}, folder{
		"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord, ""), "c/base.json": `{}`,
	})
	ids := w.fill("S1", 30)
	w.start()
	w.awaitAvailable("a", "b")
	logged := func(id string) [2]int { return [2]int{w.logged(saysAvailable, id), w.logged(saysFailed, id)} }
	// Whether a catalogue is checked before its index exists, and fails until then, depends on the engine's speed.
	before := map[string][2]int{"a": logged("a"), "b": logged("b"), "c": logged("c")}
	w.run("S1", "", core.JobSucceeded)
	w.engine.setDown(true)
	w.awaitProblem("a", indexSilent())
	w.awaitProblem("b", indexSilent())
	a := w.ready()
	if a.status != http.StatusServiceUnavailable || a.get("status").String() != "unhealthy" || a.header.Get("Retry-After") == "" {
		t.Errorf("/ready: %d %v %s", a.status, a.header, a.raw)
	}
	if got := w.problemOf("c").Code; got != core.CatalogueSchemaBuild {
		t.Errorf("what was wrong by itself is %s now", got)
	}
	w.wantGauge(map[string]bool{"a": false, "b": false, "c": false})
	w.put("S1", ids[0], `"experiment":{"changed":true}`)
	w.trigger("S1", ids[0])
	w.engine.setDown(false)
	w.awaitAvailable("a", "b")
	w.wantStatus(core.CataloguesDegraded)
	w.awaitConverged(wait)
	w.wantGauge(map[string]bool{"a": true, "b": true, "c": false})
	for id, more := range map[string]int{"a": 1, "b": 1, "c": 0} {
		if got, want := logged(id), [2]int{before[id][0] + more, before[id][1] + more}; got != want {
			t.Errorf("%s: that it is available, and that it has failed, is logged %v times, want %v", id, got, want)
		}
	}
}
