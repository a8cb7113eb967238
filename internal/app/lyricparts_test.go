package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/testkit"
)

// clinic is a Lyric's category of donors, their specimens and the samples of these.
func clinic() *testkit.LyricConfig {
	return &testkit.LyricConfig{CentralEntity: "donor", Dictionary: []byte(`{"schemas":[{"name":"donor"},
		{"name":"specimen","restrictions":{"foreignKey":[{"schema":"donor","mappings":[{"local":"donor_id","foreign":"donor_id"}]}]}},
		{"name":"sample","restrictions":{"foreignKey":[{"schema":"specimen","mappings":[{"local":"specimen_id","foreign":"specimen_id"}]}]}}]}`)}
}

// putEntity adds or replaces a record of an entity of the organization "Org A".
func putEntity(t *testing.T, server *testkit.LyricServer, entity, id, data string) {
	t.Helper()
	body := fmt.Sprintf(`{"entityName":%q,"data":{%s},"organization":"Org A","isValid":true,"systemId":%q}`, entity, data, id)
	if err := server.Put("Org A", []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// putDonor adds or replaces a donor, which contains one specimen with one sample of a depth.
func (w *world) putDonor(n, depth int) {
	w.t.Helper()
	putEntity(w.t, w.lyric, "donor", fmt.Sprint("DO", n), fmt.Sprintf(
		`"donor_id":"D%d","specimens":[{"specimen_id":"S%d","samples":[{"sample_id":"A%d","depth":%d}]}]`, n, n, n, depth))
}

// putClinic adds donors with one specimen and one sample each, which Lyric has as records too.
func putClinic(t *testing.T, w *world, donors int) {
	t.Helper()
	for n := 1; n <= donors; n++ {
		w.putDonor(n, 0)
		putEntity(t, w.lyric, "specimen", fmt.Sprint("SP", n), fmt.Sprintf(`"specimen_id":"S%d","donor_id":"D%d"`, n, n))
		putEntity(t, w.lyric, "sample", fmt.Sprint("SA", n), fmt.Sprintf(`"sample_id":"A%d","specimen_id":"S%d"`, n, n))
	}
}

// awaitCentral waits until the index holds exactly the records of the central entity that the Lyric lists.
func (w *world) awaitCentral() {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		want := map[string]string{}
		for _, r := range w.lyric.Records("Org A") {
			if r.EntityName == "donor" && r.IsValid {
				want[r.SystemID] = string(r.Body)
			}
		}
		fault := difference(want, w.lyricDocuments())
		return fault == "", fault
	})
}

// jobs returns the jobs of the world's repository, newest first.
func (w *world) jobs() []gjson.Result {
	w.t.Helper()
	return w.mustRequest(http.MethodGet, "/jobs?limit=100", http.StatusOK).get("jobs").Array()
}

// TestLyricCentralEntity: without a configured entity, the documents are the central entity's records. However the change of a record of
// another entity is requested, it has no document, and the one that contains it converges, without a run where foreign keys name it.
func TestLyricCentralEntity(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	putClinic(t, w, 12)
	w.run("", "", core.JobSucceeded)
	w.awaitCentral()
	counted(t, w.run("", "", core.JobSucceeded), map[string]int64{"totals.fetched": 12, "totals.indexed": 12, "totals.removed": 0})
	runs := len(w.jobs())

	event := func(action, entity, id, data string) string {
		return fmt.Sprintf(`{"action":%q,"categoryId":1,"entityName":%q,"isValid":true,"organization":"Org A","systemId":%q,"data":{%s}}`,
			action, entity, id, data)
	}
	notify := func(body string) { w.postBody("/notifications/"+code, body, http.StatusAccepted) }
	for i, request := range map[int]func(){
		1: func() { w.trigger("Org A", "SP1") },
		2: func() { w.trigger("Org A", "SA2") },
		3: func() {
			w.awaitJob(w.postIDs(runPath("Org A"), "SP3\nDO4", http.StatusAccepted).get("jobId").String())
			runs++
		},
		5: func() { notify(event("insert", "specimen", "SP5", `"specimen_id":"S5","donor_id":"D5"`)) },
		6: func() { notify("[" + event("update", "sample", "SA6", `"sample_id":"A6","specimen_id":"S6"`) + "]") },
		7: func() { notify(maestroRequest(code, "Org A", "SP7")) },
		8: func() { // its message is the only trace of a deleted record
			w.lyric.Remove("SA8")
			notify(event("delete", "sample", "SA8", `"sample_id":"A8","specimen_id":"S8","depth":1`))
		},
	} {
		w.putDonor(i, 1)
		request()
		w.awaitCentral()
	}
	if jobs := w.jobs(); len(jobs) != runs {
		t.Errorf("%d jobs, want %d: %s", len(jobs), runs, jobs[0].Raw)
	}
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestLyricPartsWithoutKeys: changes of records whose foreign keys do not lead to one central record, and requests for records that are gone, share
// one run of the difference; the next one starts a minute later.
func TestLyricPartsWithoutKeys(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	putClinic(t, w, 12)
	w.run("", "", core.JobSucceeded)
	runs := len(w.jobs())
	w.putDonor(1, 1)
	w.lyric.Remove("SP1") // and so the sample's key leads nowhere
	w.trigger("Org A", "SP1")
	w.awaitCentral()
	w.putDonor(2, 1)
	w.trigger("Org A", "SA1")
	w.lyric.Remove("SA3")
	w.trigger("Org A", "SA3")
	w.awaitOutcomes(core.OutcomeRemoved, 3)
	jobs := w.jobs()
	if jobs = jobs[:len(jobs)-runs]; len(jobs) < 2 {
		t.Fatalf("%d runs", len(jobs))
	}
	var later time.Time // the start of the run after
	for i, job := range jobs {
		if !job.Get("difference").Bool() || job.Get("organization").String() != "Org A" {
			t.Errorf("job %d: %s", i, job.Raw)
		}
		started := job.Get("startedAt").Time()
		if !job.Get("startedAt").Exists() || job.Get("startedAt").Type == gjson.Null {
			if i > 0 {
				t.Errorf("two runs wait: %s", job.Raw)
			}
			continue
		}
		if !later.IsZero() && later.Sub(started) < time.Minute {
			t.Errorf("runs started %s apart", later.Sub(started))
		}
		later = started
	}
}

// TestLyricPartsOfAnOlderVersion: the documents of other entities, which older versions made, leave with the next run, without force and although
// they are most of the index.
func TestLyricPartsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: &testkit.LyricConfig{}})) // lists, and makes documents of, every entity
	putClinic(t, w, 20)
	w.run("", "", core.JobSucceeded)
	if n := len(w.lyricDocuments()); n != 60 {
		t.Fatalf("%d documents", n)
	}
	w.stop()
	w.set.lyric = clinic()
	var err error
	if w.lyric, err = testkit.NewLyric(*w.set.lyric); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.lyric.Close)
	putClinic(t, w, 20)
	w.start()
	counted(t, w.run("", "", core.JobSucceeded), map[string]int64{"totals.removed": 40, "totals.indexed": 20})
	w.awaitCentral()
	for _, job := range w.jobs() {
		if strings.Contains(job.Raw, `"difference":true`) {
			t.Errorf("the removal of old documents ran a difference: %s", job.Raw)
		}
	}
}

// TestLyricPartIsExplained: what is known of a record without a document says why: it is part of a central record, it is not valid, or the central
// record is not known.
func TestLyricPartIsExplained(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{lyric: clinic()}))
	putClinic(t, w, 2)
	putEntity(t, w.lyric, "sample", "lost", `"sample_id":"A9","specimen_id":"S9"`)
	w.lyric.SetValid("DO2", false)
	w.run("", "", core.JobSucceeded)
	see := "the record is part of central record DO1, whose document contains it; see: tutti why " + code + " 'Org A' DO1"
	for id, want := range map[string]struct{ partOf, reason, next string }{
		"SP1":  {"DO1", "is of entity specimen, and only records of entity donor have documents", see},
		"SA1":  {"DO1", "is of entity sample, and only records of entity donor have documents", see},
		"lost": {"", "is of entity sample, and only records of entity donor have documents", "the record is of entity sample, and only records of entity donor have documents"},
		"DO2":  {"", "is not valid, and lyric.validOnly is true", "the record is not valid, and lyric.validOnly is true"},
	} {
		a := w.mustRequest(http.MethodGet, recordPath("Org A", id), http.StatusOK)
		if u := a.get("upstream"); u.Get("status").String() != recordtrace.StatusExcluded || u.Get("partOf").String() != want.partOf || u.Get("reason").String() != want.reason {
			t.Errorf("%s: %s", id, u.Raw)
		}
		if next := a.get("next").String(); next != want.next {
			t.Errorf("%s: next %q, want %q", id, next, want.next)
		}
	}
}
