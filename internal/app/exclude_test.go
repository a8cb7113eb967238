package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit/dataset"
)

// sampled returns members of an analysis with one sample.
func sampled(sample, specimen, donor string) string {
	return fmt.Sprintf(`"samples":[{"sampleId":%q,"specimen":{"specimenId":%q},"donor":{"donorId":%q}}]`, sample, specimen, donor)
}

// excludable fills study S1 with one analysis for each list of exclude, each with two files, and twelve others; and study S2.
func (w *world) excludable() {
	w.song.AddStudy("S1")
	put := func(study, id, donor, specimen, sample string) {
		w.put(study, id, sampled(sample, specimen, donor)+`,"files":[`+fileIn(id+"-1", "1")+","+fileIn(id+"-2", "1")+"]")
	}
	put("S1", "by-analysis", "D0", "P0", "A0")
	put("S1", "by-file", "D0", "P0", "A0")
	put("S1", "by-donor", "D1", "P0", "A0")
	put("S1", "by-specimen", "D0", "P1", "A0")
	put("S1", "by-sample", "D0", "P0", "A1")
	for i := range 12 {
		put("S1", fmt.Sprintf("kept-%02d", i), "D0", "P0", "A0")
	}
	w.song.AddStudy("S2")
	for i := range 20 {
		put("S2", fmt.Sprintf("other-%02d", i), "D0", "P0", "A0")
	}
}

const exclusions = "exclude: {organizations: [S2], analyses: [by-analysis], files: [by-file-2], donors: [D1], specimens: [P1], samples: [A1]}"

// restart starts the world's tutti again with more of the repository's configuration.
func (w *world) restart(repository ...string) {
	w.t.Helper()
	w.stop()
	w.set.repository = strings.Join(repository, "\n")
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.status == http.StatusOK && len(a.get("paused").Array()) == 0, string(a.raw)
	})
}

// awaitStored waits until the index holds n documents, none of them of an id with one of the prefixes.
func (w *world) awaitStored(n int, without ...string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		ids := slices.Sorted(maps.Keys(w.engine.documents(w)))
		wrong := slices.ContainsFunc(ids, func(id string) bool {
			return slices.ContainsFunc(without, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
		})
		return len(ids) == n && !wrong, fmt.Sprintf("%d documents, want %d: %q", len(ids), n, ids)
	})
}

// TestExclude: rules that are added remove documents with the next run, whether or not it rebuilds the index, with one document for
// each analysis and with one for each file; no trigger or notification restores them, and the trace names the rule. The run after the
// rules were deleted indexes everything.
func TestExclude(t *testing.T) {
	t.Parallel()
	for documents, each := range map[string]int{"record": 1, "file": 2} {
		for _, query := range []string{"", "?rebuild=true"} {
			t.Run(documents+query, func(t *testing.T) {
				t.Parallel()
				shape := "documents: " + documents
				w := startWorld(t, settings{repository: shape, pageSize: 5})
				w.dropAtEnd(core.NextAlias(w.alias))
				w.dropAtEnd(core.PreviousAlias(w.alias))
				w.excludable()
				w.run("", "", core.JobSucceeded)
				w.awaitStored(37 * each)

				w.restart(shape, exclusions)
				job := w.run("", query, core.JobSucceeded)
				if totals := job.Get("totals"); totals.Get("excluded").Int() != 5 || totals.Get("indexed").Int() != int64(12*each) ||
					totals.Get("removed").Int() != int64(20*each) {
					t.Errorf("totals %s", totals.Raw)
				}
				w.awaitStored(12*each, "by-", "other-")

				excluded := w.outcomes(core.OutcomeExcluded)
				w.trigger("S1", "by-donor")
				w.trigger("S2", "other-00")
				w.postBody(webhook, songEvent(code, "S1", "by-file", "PUBLISHED"), http.StatusAccepted)
				w.awaitOutcomes(core.OutcomeExcluded, excluded+3)
				w.awaitStored(12*each, "by-", "other-")
				for id, rule := range map[string]string{
					"by-analysis": `{"list":"analyses","id":"by-analysis"}`, "by-file": `{"list":"files","id":"by-file-2"}`, "by-donor": `{"list":"donors","id":"D1"}`,
					"by-specimen": `{"list":"specimens","id":"P1"}`, "by-sample": `{"list":"samples","id":"A1"}`, "kept-00": "",
				} {
					a := w.mustRequest(http.MethodGet, recordPath("S1", id), http.StatusOK)
					if got := a.get("upstream.excludedBy").Raw; got != rule {
						t.Errorf("%s: the rule is %s, want %s: %s", id, got, rule, a.raw)
					}
				}

				job = w.run("S2", "", core.JobSucceeded)
				if totals := job.Get("totals"); totals.Get("excluded").Int() != 20 || totals.Get("indexed").Int() != 0 {
					t.Errorf("totals of an excluded study: %s", totals.Raw)
				}
				w.restart(shape)
				w.run("", "", core.JobSucceeded)
				w.awaitStored(37 * each)
			})
		}
	}
}

// TestExcludeTabular: records and organizations of a tabular repository are excluded.
func TestExcludeTabular(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{pageSize: 5}))
	w.lyric.PutAll(dataset.GenerateRecords(1, "O2", 30)...)
	one := w.addRecords("O1", 20)
	w.run("", "", core.JobSucceeded)
	all := len(w.engine.documents(w))
	w.restart(w.set.repository, fmt.Sprintf("exclude: {organizations: [O2], records: [%q]}", one[0]))
	job := w.run("", "", core.JobSucceeded)
	if job.Get("totals.excluded").Int() != 1 || job.Get("totals.removed").Int() == 0 {
		t.Errorf("totals %s", job.Get("totals").Raw)
	}
	for id, document := range w.engine.documents(w) {
		if id == one[0] || strings.Contains(string(document), `"organization":"O2"`) {
			t.Errorf("%s remained: %s", id, document)
		}
	}
	w.trigger("O1", one[0])
	w.awaitOutcomes(core.OutcomeExcluded, 1)
	w.restart("lyric: {categoryId: \"1\"}")
	w.run("", "", core.JobSucceeded)
	w.awaitStored(all)
}

// TestExcludeBuiltIn: the built-in repository's outbox and runs honour the rules.
func TestExcludeBuiltIn(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{repository: "exclude: {organizations: [S2]}"})
	b.mustSend(http.MethodPost, "/studies/S2", "", http.StatusOK)
	kept, excluded := b.submit("S1"), b.submit("S2")
	b.mustSend(http.MethodPut, statePath("S1", "publish", kept), "", http.StatusOK)
	b.mustSend(http.MethodPut, statePath("S2", "publish", excluded), "", http.StatusOK)
	b.awaitOutcomes(core.OutcomeExcluded, 1)
	b.awaitStored(1, excluded)
	job := b.awaitJob(b.mustSend(http.MethodPost, "/index/repository/"+builtInCode, "", http.StatusAccepted).get("jobId").String())
	if job.Get("state").String() != string(core.JobSucceeded) || job.Get("organizationsTotal").Int() != 1 {
		t.Errorf("job %s", job.Raw)
	}
	b.awaitStored(1, excluded)
}

// TestExcludeRetry: the retry of a dead letter whose record is excluded since then ends it, and writes nothing.
func TestExcludeRetry(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	letters := w.reject("S1", 2)
	w.put("S1", "bad-S1-0", sampled("A0", "P0", "D1"))
	w.put("S1", "bad-S1-1", sampled("A0", "P0", "D0"))
	w.restart("exclude: {donors: [D1]}")
	for _, letter := range letters {
		w.retry(letter, http.StatusAccepted)
	}
	w.awaitOutcomes(core.OutcomeExcluded, 1)
	w.awaitDeadLetters("", 0)
	w.awaitStored(1, "bad-S1-0")
}
