package app_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/testkit"
)

// TestIndexRefuses: no document is lost and there is no dead letter when an engine answers 429 and 503, closes connections before and
// after a write, cuts its answers and rejects single documents for now, in runs and record by record.
func TestIndexRefuses(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{
		faulty: true, pageSize: 50, batchBytes: 40 << 10,
		rates: testkit.FaultRates{TooManyRequests: 0.1, Unavailable: 0.06, ResetRequest: 0.04, ResetResponse: 0.04, Cut: 0.04},
	})
	ids := w.fill("S1", 600)
	w.engine.injectFaults(true)
	job := w.run("S1", "?force=true", core.JobSucceeded)
	// A record that keeps being refused does not delay its page: it is fetched alone, and counts as retried.
	if n := job.Get("totals.indexed").Int() + job.Get("totals.stale").Int() + job.Get("totals.retried").Int(); n < 600 {
		t.Errorf("%d documents arrived or were retried, want 600: %s", n, job.Raw)
	}
	w.awaitConverged(wait)
	for _, id := range ids[:40] {
		w.put("S1", id, `"experiment":{"changed":true}`)
		w.trigger("S1", id)
	}
	for _, id := range ids[40:60] {
		w.song.SetState(id, "UNPUBLISHED")
		w.trigger("S1", id)
	}
	w.awaitConverged(2 * time.Minute)
	w.engine.injectFaults(false)
	whole, items := w.engine.faults()
	t.Logf("%d whole requests and %d documents were refused", whole, items)
	if whole < 5 || items < 50 {
		t.Errorf("%d whole requests and %d documents were refused: that proves little", whole, items)
	}
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestUpstreamFails: nothing is lost when an upstream cuts, truncates or refuses its answers.
func TestUpstreamFails(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 50})
	ids := w.fill("S1", 300)
	for _, fault := range []testkit.Fault{
		{Skip: 1, Times: 1, Cut: 5000},
		{Skip: 1, Times: 1, Truncate: 30_000},
		{Skip: 1, Times: 1, Status: http.StatusTooManyRequests, RetryAfter: "0"},
		{Skip: 1, Times: 1, Status: http.StatusBadGateway, ContentType: "text/html", Body: "<html>bad gateway</html>"},
	} {
		w.song.Fail(fault)
	}
	w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
	for _, fault := range []testkit.Fault{
		{Times: 1, Cut: 100},
		{Times: 1, Truncate: 100},
		{Times: 1, Status: http.StatusServiceUnavailable},
	} {
		w.song.ClearFaults()
		w.song.Fail(fault)
		w.put("S1", ids[0], fmt.Sprintf(`"experiment":{"round":%d}`, rand.Uint32()))
		w.trigger("S1", ids[0])
		w.awaitConverged(wait)
	}
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestLargeStudy: 130 MB in documents of 130 KB go through many bulk requests, none over the batch size and one
// document.
func TestLargeStudy(t *testing.T) {
	t.Parallel()
	const documents, size, batch = 1000, 130 << 10, 800 << 10
	w := startWorld(t, settings{pageSize: 50, batchBytes: batch})
	const value = 30 << 10 // OpenSearch takes no values over 32,766 bytes in free-form objects
	filler := strings.Repeat(`"`+strings.Repeat("0123456789abcdef", value/16)+`",`, size/value)
	for i := range documents {
		w.put("S1", fmt.Sprintf("large-%04d", i), `"info":{"text":[`+filler+`"`+strings.Repeat("x", size-len(filler)-i)+`"]}`)
	}
	began := time.Now()
	w.run("S1", "", core.JobSucceeded)
	t.Logf("%d MB in %s", documents*size>>20, time.Since(began).Round(time.Millisecond))
	bulks, small := w.histogram("tutti_bulk_request_bytes", 1<<20)
	if bulks != small {
		t.Errorf("%d of %d bulk requests are over 1 MiB, the limit is %d bytes and one document", bulks-small, bulks, batch)
	}
	if least := uint64(documents * size / (batch + size)); bulks < least {
		t.Errorf("%d bulk requests, want at least %d", bulks, least)
	}
	if largest, known := w.engine.largestBulk(); known && (largest > batch+size+4096 || largest < size) {
		t.Errorf("the engine was sent a bulk request of %d bytes, the limit is %d and one document of %d", largest, batch, size)
	}
	w.wantConverged()
}

// histogram returns the number of all observations and of those up to a bucket's bound.
func (w *world) histogram(name string, bound float64) (all, within uint64) {
	w.t.Helper()
	families, err := w.app.Registry().Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		for _, b := range h.GetBucket() {
			if b.GetUpperBound() == bound {
				return h.GetSampleCount(), b.GetCumulativeCount()
			}
		}
	}
	w.t.Fatalf("%s has no bucket up to %v", name, bound)
	return 0, 0
}

// TestIndexDownAtStart: without its index tutti starts, reports why it pauses, accepts triggers, and does them when the index is up; the
// same when the index goes down later.
func TestIndexDownAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{faulty: true})
	ids := w.fill("S1", 150)
	w.fill("S2", 30)
	w.engine.setDown(true)
	w.start()
	w.awaitPaused(true)
	job := w.startRun("S1", "")
	for _, a := range w.song.Analyses("S2") {
		w.trigger("S2", a.ID)
	}
	if n := w.song.Requests(testkit.RoutePage) + w.song.Requests(testkit.RouteRecord); n != 0 {
		t.Errorf("the upstream received %d requests while there was no index", n)
	}
	w.engine.setDown(false)
	if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("job %s", j.Raw)
	}
	w.awaitConverged(wait)
	w.awaitPaused(false)

	w.engine.setDown(true)
	w.put("S1", ids[0], `"experiment":{"changed":true}`)
	w.trigger("S1", ids[0])
	w.awaitPaused(true)
	w.song.SetState(ids[1], "UNPUBLISHED")
	w.trigger("S1", ids[1])
	w.engine.setDown(false)
	w.awaitConverged(wait)
	w.awaitPaused(false)
}

// awaitReady waits until the server is ready, and returns the answer: on a busy machine the store may not answer in time.
func (w *world) awaitReady() (a answer) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a = w.ready()
		return a.status == http.StatusOK, string(a.raw)
	})
	return a
}

// ready requests /ready, which must answer 503 when all catalogues have failed, or the queue or the store is down, and 200 else, also
// while a repository is paused.
func (w *world) ready() answer {
	w.t.Helper()
	a, err := w.request(http.MethodGet, "/ready")
	if err != nil {
		w.t.Fatal(err)
	}
	want := http.StatusOK
	if a.get("status").String() == "unhealthy" || a.get("components.queue").String() == "down" || a.get("components.store").String() == "down" {
		want = http.StatusServiceUnavailable
	}
	if a.status != want {
		w.t.Errorf("GET /ready: status %d, want %d: %s", a.status, want, a.raw)
	}
	return a
}

// awaitPaused waits until /ready names the repository with a reason, or names none and is healthy.
func (w *world) awaitPaused(paused bool) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		if !paused {
			return len(a.get("paused").Array()) == 0 && a.get("components.index").String() == "up" &&
				a.get("status").String() == "healthy", string(a.raw)
		}
		reason := a.get("paused.0.reason").String()
		return a.get("paused.0.repository").String() == code && reason != "" && a.get("components.index").String() == "down" &&
			strings.Contains(a.get("reasons").String(), fmt.Sprintf("repository %s is paused: %s", code, reason)), string(a.raw)
	})
}

// TestUnreachableRepository: a repository that fails is a reason in /ready, with the cause, and no reason for 503. The reason ends
// with the next answer.
func TestUnreachableRepository(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *world, id string){
		"/analysis/": func(w *world, id string) { w.trigger("S1", id) },
		"/schemas":   func(w *world, id string) { w.trigger("S1", id) },
		"/studies/":  func(w *world, _ string) { w.startRun("S1", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{})
			id := w.fill("S1", 1)[0]
			w.song.Fail(testkit.Fault{Path: regexp.MustCompile(name), Times: 1 << 30, Status: http.StatusInternalServerError})
			begin(w, id)
			awaitReason := func(yes bool) {
				w.eventually(wait, func() (bool, string) {
					a := w.ready()
					reason := a.get(`reasons.#(%"repository ` + code + ` did not answer*")`).String()
					return strings.Contains(reason, "500") == yes && (reason == "") != yes, string(a.raw)
				})
			}
			awaitReason(true)
			if a := w.ready(); a.status != http.StatusOK || !a.get("ready").Bool() {
				t.Errorf("GET /ready: %d, %s", a.status, a.raw)
			}
			w.song.ClearFaults()
			w.awaitConverged(wait)
			awaitReason(false)
		})
	}
}

// TestQueueFull: a full queue answers 503 with Retry-After, replaces an older Request by a newer one, and loses no
// accepted one.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	const room = 20
	w := newWorld(t, settings{faulty: true, maxPending: room})
	ids := w.fill("S1", 2*room)
	w.engine.setDown(true)
	w.start()
	w.awaitPaused(true)
	accepted := map[string]bool{}
	for _, id := range ids {
		a, err := w.request(http.MethodPost, recordPath("S1", id))
		if err != nil {
			t.Fatal(err)
		}
		switch a.status {
		case http.StatusAccepted:
			accepted[id] = true
		case http.StatusServiceUnavailable:
			if a.header.Get("Retry-After") == "" || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("a 503 without Retry-After or problem: %v %s", a.header, a.raw)
			}
		default:
			t.Errorf("status %d: %s", a.status, a.raw)
		}
	}
	if len(accepted) != room {
		t.Fatalf("%d requests were accepted, want %d", len(accepted), room)
	}
	if a, err := w.request(http.MethodPost, runPath("S1")); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("a run: status %d, %v, want 503", a.status, err)
	}
	if a, err := w.request(http.MethodPost, recordPath("S1", ids[0])); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("a record whose request waits: status %d, %v, want 503", a.status, err)
	}
	w.engine.setDown(false)
	w.awaitPaused(false)
	w.eventually(wait, func() (bool, string) {
		got := w.documents()
		return len(got) == room, fmt.Sprintf("%d documents", len(got))
	})
	for id := range w.documents() {
		if !accepted[id] {
			t.Errorf("%s was refused and arrived", id)
		}
	}
	// The queue takes requests again, and a run larger than the queue ends.
	w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
}

// TestStopUnderLoad: a stop in the middle of a run ends without an error, and what was in flight is done after the next start,
// also when the upstream never answered. Such a stop takes all of its time, and may report that on a slow machine:
// TestStopRequeues of consumers and the tests of each component check with a synthetic clock that it ends in time.
func TestStopUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{pageSize: 40, shutdownTimeout: time.Minute, batchBytes: 32 << 10})
	ids := w.fill("S1", 1200)
	w.start()
	rounds := 1 + testkit.Cases(1)
	for round := range rounds {
		for _, id := range ids[round*20 : round*20+20] {
			w.put("S1", id, fmt.Sprintf(`"experiment":{"round":%d}`, round))
			w.trigger("S1", id)
		}
		stuck := round == rounds-1
		if stuck {
			w.stop()
			w.set.shutdownTimeout = 2 * time.Second
			w.start()
			w.song.Fail(testkit.Fault{Path: regexp.MustCompile("/studies/"), Release: make(chan struct{})}) // never answers
		}
		before := w.song.Requests(testkit.RoutePage)
		job := w.startRun("S1", "")
		reads := 1 + rand.IntN(20)
		if stuck {
			reads = 1
		}
		w.eventually(wait, func() (bool, string) {
			n := w.song.Requests(testkit.RoutePage) - before
			return n >= reads, fmt.Sprintf("%d pages read", n)
		})
		if stuck {
			if err := w.app.Stop(t.Context()); err != nil {
				t.Log("stopping:", err)
				w.queueReleased() // as the end of the process does
			}
			w.app = nil
		} else {
			w.stop()
		}
		t.Logf("round %d: stopped after %d pages", round, w.song.Requests(testkit.RoutePage)-before)
		w.song.ClearFaults()
		w.start()
		if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
			t.Errorf("round %d: %s", round, j.Raw)
		}
		w.awaitConverged(wait)
	}
}

// queueReleased waits until the embedded queue has released its folder.
func (w *world) queueReleased() {
	w.eventually(wait, func() (bool, string) {
		lock, err := embedded.LockDir(filepath.Join(w.dir, "queue"))
		if err != nil {
			return false, err.Error()
		}
		if err := lock.Unlock(); err != nil {
			w.t.Fatal(err)
		}
		return true, ""
	})
}

// TestSecondProcess: a second tutti on the same data folder does not start and says why, whether of this process or of
// another; the first one does not notice.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 10)
	second := w.newApp()
	err := second.Start(t.Context())
	if core.CodeOf(err) != core.CodeConflict || !strings.Contains(err.Error(), w.dir) {
		t.Errorf("starting a second app: %v, want a conflict that names the folder", err)
	}
	if err := w.app.Start(t.Context()); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("starting the same app again: %v", err)
	}
	if c, _, err := w.tryChild(); err == nil {
		c.kill()
		t.Error("a second process started on the same folder")
	}
	if !strings.Contains(strings.Join(w.logs.all(), ""), "another process") {
		t.Errorf("the second process does not say why:\n%s", w.logs.tail())
	}
	w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
	var refusal *core.Error
	if !errors.As(err, &refusal) || refusal.Message == "" {
		t.Errorf("the refusal has no message: %v", err)
	}
}

// TestFailingRecordsBlockNobody: while more records than a durable consumer usually has in flight keep failing at the upstream, another
// record is indexed at once.
func TestFailingRecordsBlockNobody(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{concurrency: 16})
	id := w.fill("S1", 1)[0]
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile("/analysis/failing-"), Times: 1 << 30, Status: http.StatusInternalServerError})
	for i := range 1100 {
		w.trigger("S1", fmt.Sprintf("failing-%d", i))
	}
	w.eventually(wait, func() (bool, string) {
		n := w.metric("tutti_documents_total", "outcome", "retried")
		return n >= 1100, fmt.Sprintf("%v records have failed", n)
	})
	w.trigger("S1", id)
	w.awaitOutcomes(core.OutcomeIndexed, 1)
}

// TestRepositoryGoesDown: a run whose repository goes down in the middle is paused and named by /ready, continues after a restart of
// tutti, and succeeds once the repository answers again.
func TestRepositoryGoesDown(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{pageSize: 50})
	ids := w.fill("S1", 300)
	w.run("S1", "", core.JobSucceeded)
	w.song.SetState(ids[0], "UNPUBLISHED") // for the sweep
	w.put("S1", ids[299], `"experiment":{"changed":true}`)
	down := func() { w.song.Fail(testkit.Fault{Skip: 3, Status: http.StatusServiceUnavailable}) }
	down()
	job := w.startRun("S1", "")
	awaitOutage := func() {
		w.eventually(wait, func() (bool, string) {
			a, j := w.ready(), w.job(job)
			return j.Get("state").String() == string(core.JobPaused) && strings.Contains(j.Get("paused").String(), "503") &&
				a.get("components.upstream").String() == "degraded" && a.get("paused.0.repository").String() == code &&
				strings.Contains(a.get("paused.0.reason").String(), "503"), j.Raw + string(a.raw)
		})
	}
	awaitOutage()
	if list := w.mustRequest(http.MethodGet, "/jobs?state=paused", http.StatusOK); list.get("jobs.0.id").String() != job || list.get("jobs.0.paused").String() == "" {
		t.Errorf("GET /jobs?state=paused: %s", list.raw)
	}
	w.trigger("S1", ids[299])
	w.stop()
	w.start()
	awaitOutage()
	if n := len(w.documents()); n != 300 {
		t.Errorf("%d documents during the outage, want 300", n)
	}
	w.song.ClearFaults()
	if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) || j.Get("paused").Exists() {
		t.Errorf("the job ended %s", j.Raw)
	}
	w.wantConverged()
	w.awaitPaused(false)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}
