package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index"
)

// TestCatalogueProblems: each of an engine's ways to fail has its code, in words that hold nothing of the engine's; each
// ends without a restart when its cause does.
func TestCatalogueProblems(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const good = `"studyId":{"type":"keyword"}`
	causes := map[string]struct {
		answer http.HandlerFunc
		want   core.CatalogueProblem
	}{
		"missing":   {nil, indexMissing()},
		"forbidden": {refuses(http.StatusForbidden, "security_exception"), indexForbidden()},
		"proxied":   {answers(http.StatusForbidden, "<html>Forbidden</html>"), indexForbidden()},
		"broken":    {answers(http.StatusInternalServerError, "oops"), mappingUnread()},
		"blocked":   {refuses(http.StatusForbidden, "cluster_block_exception"), mappingUnread()},
		"headless":  {refuses(http.StatusServiceUnavailable, "cluster_block_exception"), indexSilent()},
		"gateway":   {answers(http.StatusBadGateway, "<html>Bad Gateway</html>"), indexSilent()},
		"strange": {
			mapped(`"studyId":5`), core.CatalogueProblem{Code: core.CatalogueMappingFetch, Message: "the mapping of the index cannot be parsed"},
		},
		"fieldless": {mapped(""), notBuilt("the mapping of the index has no fields to search")},
		"divided": {
			answers(http.StatusOK, `{"a":{"mappings":{"properties":{"k":{"type":"long"}}}},"b":{"mappings":{"properties":{"k":{"type":"date"}}}}}`),
			notBuilt(`the field "k" is of type long in one index of the alias and of type date in another`),
		},
		"cut": {hangsUp, indexSilent()},
	}
	files := folder{"sound/base.json": based("sound", "sound", "")}
	c.set("sound", mapped(good))
	for id, cause := range causes {
		files[id+"/base.json"] = based(id, id, "")
		c.set(id, cause.answer)
	}
	b := newBuilt(t, c.server.URL, files)
	b.start()
	b.awaitAvailable("sound")
	for id, cause := range causes {
		b.awaitProblem(id, cause.want)
		failedCatalogue{documentType: id, CatalogueProblem: cause.want}.shown(b.world, id)
	}
	b.readiness(core.CataloguesDegraded)
	for id := range causes {
		c.set(id, mapped(good))
	}
	for id := range causes {
		b.awaitAvailable(id)
	}
	b.readiness(core.CataloguesHealthy)
	for id := range causes {
		if failed, available := b.logged(saysFailed, id), b.logged(saysAvailable, id); failed != 1 || available != 1 {
			t.Errorf("%s: that it has failed is logged %d times, that it is available %d times", id, failed, available)
		}
	}
}

// TestCatalogueUnknownError: a fault of tutti itself has a code too; it is tried again, told of once, and is no other
// catalogue's matter.
func TestCatalogueUnknownError(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{
		"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord+"-b", ""),
	})
	x := w.moody()
	other := w.alias + "-b"
	x.set(other, func(context.Context) error { return errors.New("a secret of the program") })
	w.start()
	w.awaitAvailable("a")
	w.eventually(wait, func() (bool, string) { return x.count(other) >= 2, fmt.Sprintf("asked %d times", x.count(other)) })
	want := core.CatalogueProblem{Code: core.CatalogueUnknown, Message: "the catalogue could not be loaded"}
	failedCatalogue{documentType: "b", CatalogueProblem: want}.shown(w, "b")
	if n := w.logged(saysFailed, "b"); n != 1 {
		t.Errorf("that it has failed is logged %d times", n)
	}
	if n := w.logged(saysFailed, "a"); n != 0 {
		t.Errorf("that the other has failed is logged %d times", n)
	}
	if err := x.Index.Ensure(t.Context(), specOf(other)); err != nil {
		t.Fatal(err)
	}
	x.set(other, nil)
	w.awaitAvailable("b")
	w.gauged(map[string]bool{"a": true, "b": true})
}

func specOf(alias string) index.Spec {
	return index.Spec{Alias: alias, Mapping: []byte(`{"properties":{"studyId":{"type":"keyword"}}}`)}
}

// TestCatalogueIndexMadeLater: an index that is missing at the start makes its catalogues available as soon as its
// repository makes it, and as soon as anybody else does.
func TestCatalogueIndexMadeLater(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{
		"own/base.json": based("own", aliasWord, ""), "foreign/base.json": based("foreign", aliasWord+"-foreign", ""),
	})
	x := w.moody()
	allowed := make(chan struct{})
	x.making[w.alias] = func(ctx context.Context) error {
		select {
		case <-allowed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.start()
	w.awaitProblem("own", indexMissing())
	w.awaitProblem("foreign", indexMissing())
	w.readiness(core.CataloguesUnhealthy)
	w.eventually(wait, func() (bool, string) { return x.count(w.alias) >= 4, fmt.Sprintf("%d looks", x.count(w.alias)) })
	close(allowed)
	w.awaitAvailable("own")
	w.readiness(core.CataloguesDegraded)
	if err := x.Index.Ensure(t.Context(), specOf(w.alias+"-foreign")); err != nil {
		t.Fatal(err)
	}
	w.awaitAvailable("foreign")
	w.readiness(core.CataloguesHealthy)
}

// TestCatalogueGrows: fields that new documents bring are shown, and its time and its tag tell that the answer is another.
func TestCatalogueGrows(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{
		"a/base.json": based("a", aliasWord, `"extended":[{"fieldName":"experiment.weight","displayName":"Weight","unit":"kg"}]`),
	})
	w.start()
	w.awaitAvailable("a")
	before := w.detail("a")
	if _, is := w.fields("a")["experiment.weight"]; is {
		t.Fatal("the field is there already")
	}
	w.put("S1", "first", `"experiment":{"weight":1.5,"visits":[{"at":"2024-05-01"}]}`)
	w.trigger("S1", "first")
	w.awaitField("a", "experiment.weight", "double")
	fields := w.fields("a")
	if got := fields["experiment.weight"]; got.DisplayName != "Weight" || got.Unit != "kg" {
		t.Errorf("the field is shown as %+v", got)
	}
	if fields["experiment.visits"].Type != "nested" || fields["experiment.visits.at"].Type != "date" {
		t.Errorf("the list is shown as %+v and %+v", fields["experiment.visits"], fields["experiment.visits.at"])
	}
	after := w.detail("a")
	if before.header.Get("ETag") == after.header.Get("ETag") || after.header.Get("ETag") == "" {
		t.Errorf("the tags are %q and %q", before.header.Get("ETag"), after.header.Get("ETag"))
	}
	if before.get("operators.double").Exists() || !after.get("operators.double").Exists() {
		t.Errorf("operators were %s and are %s", before.get("operators").Raw, after.get("operators").Raw)
	}
	if n := w.logged(saysFailed, "a"); n != 0 {
		t.Errorf("that it has failed is logged %d times", n)
	}
	w.converges(wait)
}

// TestCatalogueEngineGoes: an engine that goes makes its catalogues fail after a while, one that comes back makes them
// available, and what was triggered meanwhile is done.
func TestCatalogueEngineGoes(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{spoilt: true}, folder{
		"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord, ""), "c/base.json": `{}`,
	})
	ids := w.fill("S1", 30)
	w.start()
	w.awaitAvailable("a", "b")
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
	w.gauged(map[string]bool{"a": false, "b": false, "c": false})
	w.put("S1", ids[0], `"experiment":{"changed":true}`)
	w.trigger("S1", ids[0])
	w.engine.setDown(false)
	w.awaitAvailable("a", "b")
	w.readiness(core.CataloguesDegraded)
	w.converges(wait)
	w.gauged(map[string]bool{"a": true, "b": true, "c": false})
	for id, want := range map[string][2]int{"a": {2, 1}, "b": {2, 1}, "c": {0, 1}} {
		if available, failed := w.logged(saysAvailable, id), w.logged(saysFailed, id); available != want[0] || failed != want[1] {
			t.Errorf("%s: that it is available is logged %d times, that it has failed %d times, want %v", id, available, failed, want)
		}
	}
}
