package app_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
)

// TestWrongMappingPauses: a mapping file that rejects every record pauses its repository; the job and /ready name the field. The pause
// comes before most records become dead letters.
func TestWrongMappingPauses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"properties":{"donor":{"properties":{"age":{"type":"long"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file), pageSize: 500})
	w.song.AddStudy("S1")
	for i := range 1500 {
		w.put("S1", fmt.Sprintf("A%04d", i), `"donor":{"age":"unknown"}`)
	}
	id := w.startRun("S1", "")
	said := func(why string) bool {
		return strings.Contains(why, "_exception") && strings.Contains(why, `field "donor.age"`)
	}
	w.eventually(wait, func() (bool, string) {
		job := w.job(id)
		return said(job.Get("paused").String()), job.Raw
	})
	if a := w.ready(); !said(a.get("paused.0.reason").String()) {
		t.Errorf("/ready says %s", a.raw)
	}
	if n := w.metric("tutti_repository_paused", "repository", code); n != 1 {
		t.Errorf("tutti_repository_paused is %f", n)
	}
	if job := w.job(id); job.Get("state").String() != string(core.JobRunning) {
		t.Errorf("job %s", job.Raw)
	}
	if n := len(w.deadLettersByRecord()); n == 0 || n >= 1000 {
		t.Errorf("%d dead letters", n)
	}
}

// TestMappingContradicts: a mapping file that contradicts the index stops nothing: /ready names the field and the rebuild, records are
// indexed as before, and a rebuild gives the index the new mapping.
func TestMappingContradicts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(kind string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"properties":{"analysisId":{"type":"keyword"},"donor":{"properties":{"age":{"type":%q}}}}}`, kind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("keyword")
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.put("S1", "A1", `"donor":{"age":7}`)
	w.run("", "", core.JobSucceeded)
	plan := func() answer {
		t.Helper()
		return w.mustRequest(http.MethodGet, "/index/repository/"+code+"/mapping", http.StatusOK)
	}
	if a := plan(); a.get("difference").Bool() || a.get("state").String() != "alias" {
		t.Errorf("the plan is %s", a.raw)
	}
	write("long")
	want := `{"field":"donor.age","wanted":"long","live":"keyword","change":"needs a rebuild"}`
	if a := plan(); a.get(`fields.#(field=="donor.age")`).Raw != want || a.get("next.0").String() != "tutti index "+code+" --rebuild --wait" {
		t.Errorf("the plan is %s", a.raw)
	}
	w.stop()
	w.start()
	reason := func() string { return w.ready().get("reasons").String() }
	w.eventually(wait, func() (bool, string) {
		said := reason()
		return strings.Contains(said, `the field \"donor.age\" is keyword in the index and long in the mapping; run tutti index `+code+" --rebuild"), said
	})
	w.put("S1", "A2", `"donor":{"age":8}`)
	w.trigger("S1", "A2")
	w.awaitConverged(wait)
	w.run("", "?rebuild=true", core.JobSucceeded)
	if said := reason(); strings.Contains(said, "donor.age") {
		t.Errorf("after the rebuild /ready says %s", said)
	}
	w.awaitConverged(wait)
	if a := plan(); a.get("difference").Bool() {
		t.Errorf("the plan is %s", a.raw)
	}
}

// TestTypeChanges: the dead letter of a record whose repository has changed a field's type names the field, the mapping file and the
// command, in the same words with each engine.
func TestTypeChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"properties":{"donor":{"properties":{"age":{"type":"long"},"site":{"properties":{"city":{"type":"keyword"}}}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]settings{"mapping file": {repository: fmt.Sprintf("mappingFile: %q", file)}, "own mapping": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, set)
			w.put("S1", "A1", `"donor":{"age":7,"site":{"city":"Oslo"}}`)
			w.run("", "", core.JobSucceeded)
			w.put("S1", "A2", `"donor":{"age":"old"}`)
			w.put("S1", "A3", `"donor":{"site":"Oslo"}`)
			w.run("", "", core.JobPartial)
			where, number := "a mapping file (mappingFile)", "double"
			if set.repository != "" {
				where, number = file, "long"
			}
			for id, c := range map[string][2]string{"A2": {"donor.age", "a number (" + number + ")"}, "A3": {"donor.site", "an object"}} {
				want := fmt.Sprintf("the value of the field %q does not fit its type in the index: the record holds a text, and the field takes %s; "+
					"fix the record, then retry; or if the type of the field has changed, run tutti index %s --rebuild (after describing the field in %s, "+
					"if most records hold another kind or its type is declared)", c[0], c[1], code, where)
				if hint := w.byRecord("")[id].Get("hint").String(); hint != want {
					t.Errorf("%s: the hint is %q, want %q", id, hint, want)
				}
			}
		})
	}
}

// TestRefusedMappingPauses: a mapping file that no engine takes pauses its repository alone, with the path of the field; the repository
// continues once the file is right.
func TestRefusedMappingPauses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mappings":{"properties":{"experiment":{"properties":{"age":{"type":"lonng"}}}}}}`)
	other := "tutti-refused-" + strings.ToLower(rand.Text())
	w := newWorld(t, settings{more: fmt.Sprintf("  - {code: own, type: local, indexName: %s, mappingFile: %q, newFields: reject}\n", other, file)})
	w.dropAtEnd(other)
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		reason := a.get(`paused.#(repository=="own").reason`).String()
		return strings.Contains(reason, `"experiment.age"`) && strings.Contains(reason, "lonng") && len(a.get("paused").Array()) == 1, string(a.raw)
	})
	w.put("S1", "A1", `"experiment":{"age":7}`)
	w.run("", "", core.JobSucceeded)
	write(`{"mappings":{"properties":{"experiment":{"properties":{"age":{"type":"long"}}}}}}`)
	w.eventually(time.Minute, func() (bool, string) {
		a := w.ready()
		return len(a.get("paused").Array()) == 0, string(a.raw)
	})
	plan := w.mustRequest(http.MethodGet, "/index/repository/own/mapping", http.StatusOK)
	if plan.get("state").String() != "alias" || plan.get("refused").Exists() {
		t.Errorf("the plan is %s", plan.raw)
	}
}

// TestPartialMapping: what a mapping file does not name is as tutti makes it, in filters, facets and pivots, on every engine.
func TestPartialMapping(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"mappings":{"properties":{"experiment":{"properties":{"age":{"type":"long"}}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
	w.put("S1", "A1", `"experiment":{"age":7,"site":"Oslo"},"samples":[{"sampleId":"SA1","sampleType":"DNA"}]`)
	w.put("S2", "A2", `"experiment":{"age":8,"site":"Rome"},"samples":[{"sampleId":"SA2","sampleType":"RNA"}]`)
	w.run("", "", core.JobSucceeded)
	for sqon, want := range map[string]int64{
		`{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}`:                                                                                              1,
		`{"op":"in","content":{"fieldName":"experiment.site","value":["Oslo"]}}`:                                                                                    1,
		`{"op":"and","pivot":"samples","content":[{"op":"in","content":{"fieldName":"samples.sampleType","value":["DNA"]}}]}`:                                       1,
		`{"op":"and","content":[{"op":"gt","content":{"fieldName":"experiment.age","value":6}},{"op":"in","content":{"fieldName":"studyId","value":["S1","S2"]}}]}`: 2,
	} {
		body := fmt.Sprintf(`{"query":"query($f:JSON){analysis{hits(filters:$f){total} aggregations{studyId{buckets{key doc_count}} samples__sampleType{buckets{key}}}}}","variables":{"f":%s}}`, sqon)
		a := w.postBody("/"+w.alias+"/graphql", body, http.StatusOK)
		if got := a.get("data.analysis.hits.total").Int(); got != want || a.get("errors").Exists() {
			t.Errorf("%s finds %d, want %d: %s", sqon, got, want, a.raw)
		}
		if a.get("data.analysis.aggregations.studyId.buckets.#").Int() == 0 || a.get("data.analysis.aggregations.samples__sampleType.buckets.#").Int() == 0 {
			t.Errorf("%s has no buckets: %s", sqon, a.raw)
		}
	}
}
