package app_test

import (
	"net/http"
	"slices"
	"testing"

	"tutti/internal/core"
)

// ordered are the members of an analysis with its arrays in one order, which Song's list has, or in another, which its single analysis has.
func ordered(single bool, steps string) string {
	files := []string{
		`{"objectId":"f1","fileName":"b.bam","info":{"x":[{"i":1},{"i":2}]}}`, `{"objectId":"f2","fileName":"a.bam"}`,
		`{"objectId":"f3","fileName":"c.vcf"}`,
	}
	samples := []string{
		`{"sampleId":"SA1","donor":{"donorId":"D1"},"specimen":{"specimenId":"SP1"}}`,
		`{"sampleId":"SA2","donor":{"donorId":"D1"},"specimen":{"specimenId":"SP1"}}`,
		`{"sampleId":"SA3","donor":{"donorId":"D1"},"specimen":{"specimenId":"SP2"}}`,
		`{"sampleId":"SA4","donor":{"donorId":"D2"},"specimen":{"specimenId":"SP3"}}`,
	}
	if single {
		slices.Reverse(files)
		slices.Reverse(samples)
	}
	list := func(items []string) string {
		out := "["
		for i, item := range items {
			if i > 0 {
				out += ","
			}
			out += item
		}
		return out + "]"
	}
	return `"files":` + list(files) + `,"samples":` + list(samples) + `,"experiment":{"steps":` + steps + `}`
}

// TestArraysWithoutOrder: an analysis whose files and samples are in another order is the same, whatever documents it becomes; one whose
// experiment has another order is not. The document keeps the order in which it was fetched.
func TestArraysWithoutOrder(t *testing.T) {
	t.Parallel()
	for kind, documents := range map[string][]string{"record": {"A"}, "analysis": {"A"}, "file": {"f1", "f2", "f3"}, "file-v4": {"f1", "f2", "f3"}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{repository: "documents: " + kind})
			w.song.AddStudy("S1")
			w.put("S1", "A", ordered(false, "[1,2]"))
			w.run("", "", core.JobSucceeded)
			w.awaitDocuments(documents...)
			before := w.engine.documents(w)
			check := func(comparison, next string) {
				t.Helper()
				a := w.mustRequest(http.MethodGet, recordPath("S1", "A"), http.StatusOK)
				if got := a.get("index.comparison").String(); got != comparison || a.get("index.documents.0.content").String() != comparison {
					t.Errorf("why: %s", a.raw)
				}
				if len(a.get("next").String()) < len(next) || a.get("next").String()[:len(next)] != next {
					t.Errorf("next: %s", a.raw)
				}
			}
			w.put("S1", "A", ordered(true, "[1,2]"))
			check("equal", "nothing to do")
			if kind == "record" || kind == "analysis" { // a run of files writes every document
				w.wantDrift(w.run("", "?difference=true", core.JobSucceeded).Get("id").String(), core.Drift{Unchanged: 1})
			}
			for id, was := range w.engine.documents(w) {
				if kind != "file" && kind != "file-v4" && string(was) != string(before[id]) {
					t.Errorf("%s was %s, is %s", id, before[id], was)
				}
			}
			w.put("S1", "A", ordered(true, "[2,1]"))
			check("differs", "the index holds another state than the repository")
			if kind == "record" || kind == "analysis" {
				w.wantDrift(w.run("", "?difference=true", core.JobSucceeded).Get("id").String(), core.Drift{Different: 1})
			}
		})
	}
}

// TestLyricChildrenWithoutOrder: a record of Lyric that contains others, of whatever entity, is the same in any order of these; one with
// another order of values is not.
func TestLyricChildrenWithoutOrder(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	put := func(children string) {
		t.Helper()
		putEntity(t, w.lyric, "donor", "DO1", `"donor_id":"D1","specimens":[`+children+`]`)
	}
	check := func(comparison string, drift core.Drift) {
		t.Helper()
		if a := w.mustRequest(http.MethodGet, recordPath("Org A", "DO1"), http.StatusOK); a.get("index.comparison").String() != comparison {
			t.Errorf("why: %s", a.raw)
		}
		w.wantDrift(w.run("", "?difference=true", core.JobSucceeded).Get("id").String(), drift)
	}
	put(`{"specimen_id":"S1","experiment":[{"id":"E1","values":["a","b"]},{"id":"E2"}]},{"specimen_id":"S2"}`)
	w.run("", "", core.JobSucceeded)
	w.awaitCentral()
	put(`{"specimen_id":"S2"},{"specimen_id":"S1","experiment":[{"id":"E2"},{"id":"E1","values":["a","b"]}]}`)
	check("equal", core.Drift{Unchanged: 1})
	put(`{"specimen_id":"S2"},{"specimen_id":"S1","experiment":[{"id":"E2"},{"id":"E1","values":["b","a"]}]}`)
	check("differs", core.Drift{Different: 1})
}

// TestSharedOrder: the same analysis of two Songs, each with its own order of files, is no conflict.
func TestSharedOrder(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	for n, song := range []interface {
		Put(study string, body []byte) error
	}{p.song, p.other} {
		body := `{"analysisId":"A","studyId":"S1","analysisState":"PUBLISHED","updatedAt":"2024-01-01","sex":"m",` + ordered(n == 1, "[1]") + `}`
		if err := song.Put("S1", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	p.runOf(code, "")
	p.runOf(otherCode, "")
	p.awaitFound(map[string]string{"A": "m " + code + " " + otherCode})
	p.wantConflicts()
	for _, repository := range []string{code, otherCode} {
		if drift := p.runOf(repository, "?difference=true").Get("totals.drift"); drift.Get("unchanged").Int() != 1 || drift.Get("different").Int() != 0 {
			t.Errorf("%s: %s", repository, drift.Raw)
		}
	}
}
