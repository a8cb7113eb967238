package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// keepChanging keeps changing, withdrawing and publishing records, with a trigger for each change, until stop is closed.
func (w *world) keepChanging(ids []string, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		id := ids[rng.IntN(len(ids))]
		switch rng.IntN(4) {
		case 0:
			w.song.SetState(id, "UNPUBLISHED")
		case 1:
			id = fmt.Sprintf("new-%d", n)
			fallthrough
		default:
			if err := w.song.Put("S1", fmt.Appendf(nil, `{"analysisId":%q,"studyId":"S1","analysisState":"PUBLISHED","change":%d}`, id, n)); err != nil {
				w.t.Error(err)
			}
		}
		if !w.tryPost(recordPath("S1", id)) {
			w.t.Errorf("the trigger of %s was refused", id)
			return
		}
	}
}

// search keeps searching a catalogue until stop is closed, and returns the number of searches. None may fail, or find fewer than least
// documents.
func (w *world) search(catalogue string, least int64, stop <-chan struct{}) int {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return n
		case <-time.After(5 * time.Millisecond):
		}
		a, err := w.tryPostBody("/"+catalogue+"/graphql", `{"query":"{a{hits{total} aggregations{studyId{buckets{key doc_count}}}}}"}`)
		total := gjson.GetBytes(a.raw, "data.a.hits.total")
		if err != nil || a.status != http.StatusOK || !total.Exists() || total.Int() < least || gjson.GetBytes(a.raw, "errors").Exists() {
			w.t.Errorf("search %d: %d %s %v, want at least %d documents", n, a.status, a.raw, err, least)
			return n
		}
	}
}

// TestRebuild: the index is replaced while records change and searches run. No search fails or sees a part of an index, no change is
// lost, and the new index has the mapping that its documents would have now.
func TestRebuild(t *testing.T) {
	t.Parallel()
	const records = 600
	var slow atomic.Bool
	w, _ := newCatalogued(t, settings{pageSize: 20, song: testkit.SongConfig{BeforePage: func(*testkit.SongServer, int, testkit.PageCall) {
		if slow.Load() {
			time.Sleep(20 * time.Millisecond) // of a repository, so that much changes meanwhile
		}
	}}}, folder{"a/base.json": based("a", aliasWord, "")})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", records)
	w.put("S1", "first", `"amount":1`)
	w.start()
	w.run("", "", core.JobSucceeded)
	w.awaitAvailable("a")
	w.awaitField("a", "amount", "double")
	w.put("S1", "first", `"amount":"text"`)
	w.trigger("S1", "first")
	w.eventually(wait, func() (bool, string) {
		letters := w.deadLettersByRecord()
		return len(letters) == 1, fmt.Sprint(letters)
	})

	slow.Store(true)
	stop := make(chan struct{})
	var work sync.WaitGroup
	var searches int
	work.Go(func() { w.keepChanging(ids[:records/4], stop) })
	work.Go(func() { searches = w.search("a", records/2, stop) })
	job := w.awaitJob(w.startRun("", "?rebuild=true"))
	close(stop)
	work.Wait()
	if e := job.Get("error"); e.Exists() && e.Get("message").String() != "S1: the list kept shifting while it was read" {
		t.Errorf("the job is %s", job.Raw)
	}
	if !job.Get("rebuild").Bool() || job.Get("totals.indexed").Int() < records/2 {
		t.Errorf("the job is %s", job.Raw)
	}
	w.awaitConverged(wait)
	w.awaitField("a", "amount", "keyword")
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %v", letters)
	}
	if searches < 10 {
		t.Errorf("only %d searches", searches)
	}
	if jobs := w.mustRequest(http.MethodGet, "/jobs?limit=10", http.StatusOK).get("jobs.#").Int(); jobs > 2 {
		t.Errorf("%d jobs: the moved alias was taken for a replaced index", jobs)
	}
}

// TestRebuildIncomplete: an index that lacks most documents, or an organization, does not replace the one that serves.
func TestRebuildIncomplete(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", 40)
	w.fill("S2", 40)
	w.run("", "", core.JobSucceeded)
	before := w.documents()
	for _, id := range ids {
		w.song.SetState(id, "UNPUBLISHED")
	}
	job := w.run("", "?rebuild=true", core.JobFailed)
	if e := job.Get("error"); e.Get("code").String() != core.JobErrorPruneGuard ||
		!strings.HasPrefix(e.Get("message").String(), "the index was not replaced: the new index lacks 40 of 80 documents") {
		t.Errorf("the error is %s", e.Raw)
	}
	if fault := difference(before, w.documents()); fault != "" {
		t.Error(fault)
	}
	w.put("S1", ids[0], `"a":1`)
	w.trigger("S1", ids[0])
	w.awaitOutcomes(core.OutcomeIndexed, 121)
	w.run("", "?rebuild=true&force=true", core.JobSucceeded)
	w.awaitConverged(wait)

	w.put("S1", "after", `"a":2`)
	w.trigger("S1", "after")
	w.awaitConverged(wait)
	back := w.mustRequest(http.MethodPost, runPath("")+"/rollback", http.StatusAccepted)
	w.awaitJob(back.get("jobId").String()) // removes more than a fifth, which the guard prevents
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitConverged(wait)
	w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)
	w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNotFound)
	w.mustRequest(http.MethodPost, runPath("")+"/rollback", http.StatusNotFound)
}

// TestRebuildDeleted: a rebuild whose index an operator deletes fails with what to do, the index before serves, and the next one succeeds.
func TestRebuildDeleted(t *testing.T) {
	t.Parallel()
	var w *world
	var rebuilding atomic.Bool
	w = startWorld(t, settings{pageSize: 5, song: testkit.SongConfig{BeforePage: func(_ *testkit.SongServer, _ int, call testkit.PageCall) {
		if call.Offset > 5 && rebuilding.CompareAndSwap(true, false) {
			if err := w.app.Index().Drop(context.WithoutCancel(t.Context()), core.NextAlias(w.alias), ""); err != nil {
				t.Error(err)
			}
		}
	}}})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.fill("S1", 40)
	w.run("", "", core.JobSucceeded)
	before := w.documents()
	rebuilding.Store(true)
	job := w.run("", "?rebuild=true", core.JobFailed)
	const want = "the index was not replaced: the index that was being filled was deleted; start the rebuild again"
	if e := job.Get("error"); e.Get("code").String() != "conflict" || e.Get("message").String() != want {
		t.Errorf("the error is %s", e.Raw)
	}
	if fault := difference(before, w.documents()); fault != "" {
		t.Error(fault)
	}
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitConverged(wait)
}

// TestRollbackAtOnce: of several rollbacks that are requested at the same time one moves the alias, and a later one moves it again only
// once the run of the first has ended.
func TestRollbackAtOnce(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	release := make(chan struct{})
	w := startWorld(t, settings{song: testkit.SongConfig{BeforePage: func(*testkit.SongServer, int, testkit.PageCall) {
		if held.Load() {
			waitFor(t, release)
		}
	}}})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.fill("S1", 5)
	identity := func() string {
		t.Helper()
		id, err := w.app.Index().Identity(t.Context(), w.alias)
		if err != nil || id == "" {
			t.Fatalf("%q, %v", id, err)
		}
		return id
	}
	w.run("", "", core.JobSucceeded)
	old := identity()
	w.run("", "?rebuild=true", core.JobSucceeded)
	rebuilt := identity()
	held.Store(true)
	const requests = 4
	answers := make(chan answer, requests)
	for range requests {
		go func() {
			a, err := w.request(http.MethodPost, runPath("")+"/rollback")
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	var job string
	for range requests {
		switch a := <-answers; a.status {
		case http.StatusAccepted:
			job = a.get("jobId").String()
		case http.StatusConflict:
			if a.get("hint").String() == "" {
				t.Errorf("no hint: %s", a.raw)
			}
		default:
			t.Errorf("%d %s", a.status, a.raw)
		}
	}
	if now := identity(); now != old || job == "" {
		t.Errorf("the alias stands for %s, want %s; the job is %q", now, old, job)
	}
	w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusConflict)
	close(release)
	w.awaitJob(job)
	w.eventually(wait, func() (bool, string) { // a request that has continued the rollback may have queued a run as well
		a := w.mustRequest(http.MethodGet, "/jobs?limit=10", http.StatusOK)
		return !a.get(`jobs.#(state=="running")`).Exists() && !a.get(`jobs.#(state=="queued")`).Exists(), string(a.raw)
	})
	w.awaitJob(w.mustRequest(http.MethodPost, runPath("")+"/rollback", http.StatusAccepted).get("jobId").String())
	if now := identity(); now != rebuilt {
		t.Errorf("the alias stands for %s, want %s", now, rebuilt)
	}
	w.awaitConverged(wait)
}

// TestRebuildAfterRun: a change that was indexed while the rebuild waited for another run is in the new index too, also where the list
// does not have it at the moment.
func TestRebuildAfterRun(t *testing.T) {
	t.Parallel()
	held, release := make(chan struct{}), make(chan struct{})
	var pages atomic.Int32
	w := startWorld(t, settings{song: testkit.SongConfig{BeforePage: func(s *testkit.SongServer, _ int, _ testkit.PageCall) {
		if pages.Add(1) == 1 {
			close(held)
			waitFor(t, release)
		} else { // of the rebuild
			s.SetState("late", "UNPUBLISHED")
		}
	}, BeforeRecord: func(s *testkit.SongServer, id string) {
		if id == "late" && pages.Load() > 1 {
			s.SetState("late", "PUBLISHED")
		}
	}}})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.fill("S1", 5)
	first := w.startRun("", "")
	<-held
	rebuild := w.startRun("", "?rebuild=true")
	w.put("S1", "late", `"a":1`)
	w.trigger("S1", "late")
	w.awaitOutcomes(core.OutcomeIndexed, 1)
	close(release)
	w.awaitJob(first)
	if j := w.awaitJob(rebuild); j.Get("state").String() != string(core.JobSucceeded) {
		t.Errorf("the rebuild ended %s", j.Raw)
	}
	w.awaitConverged(wait)
}

// TestRebuildKilled: a tutti that is killed while it rebuilds, at any page or at the move of the alias, continues after its next start.
// No change made meanwhile is lost, also for the index from before.
func TestRebuildKilled(t *testing.T) {
	t.Parallel()
	const pages = 11 // of 40 records
	for round, until := range []int{1, 2 + rand.IntN(pages-2), pages - 1, pages, pages} {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{pageSize: 40, batchBytes: 32 << 10, concurrency: 2})
			w.dropAtEnd(core.NextAlias(w.alias))
			w.dropAtEnd(core.PreviousAlias(w.alias))
			ids := w.fill("S1", 400)
			process := w.startChild()
			w.run("", "", core.JobSucceeded)
			read := w.song.Requests(testkit.RoutePage)
			job := w.startRun("", "?rebuild=true")
			var doubtful []string
			for i := 0; w.song.Requests(testkit.RoutePage)-read < until && i < len(ids); i++ {
				w.put("S1", ids[i], fmt.Sprintf(`"changed":%d`, i))
				if !w.tryPost(recordPath("S1", ids[i])) {
					doubtful = append(doubtful, ids[i])
				}
			}
			w.eventually(wait, func() (bool, string) {
				n := w.song.Requests(testkit.RoutePage) - read
				return n >= until, fmt.Sprintf("%d pages read", n)
			})
			<-time.After(rand.N(100 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
			process.kill()
			t.Logf("killed after %d pages of %d", w.song.Requests(testkit.RoutePage)-read, pages)

			w.start()
			if j := w.awaitJob(job); j.Get("state").String() != string(core.JobSucceeded) {
				t.Errorf("the job ended %s", j.Raw)
			}
			w.awaitConverged(wait, doubtful...)
			for _, id := range doubtful {
				w.trigger("S1", id)
			}
			w.put("S1", "after", `"a":1`)
			w.trigger("S1", "after")
			w.awaitConverged(wait)
			w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)
			w.awaitConverged(wait)
		})
	}
}

// TestRebuildElsewhere: of two processes with an engine of their own, both write to each index that one of them has made the
// repository's, rebuild after rebuild, and the catalogues of both follow soon.
func TestRebuildElsewhere(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{queueURL: externalQueue(t), faulty: true}, folder{"a/base.json": based("a", aliasWord, "")})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", 50)
	w.put("S1", "first", `"amount":1`)
	w.start()
	w.run("", "", core.JobSucceeded)
	second := w.secondProcess()
	second.start()
	both := []*world{w, second}
	for _, p := range both {
		p.awaitAvailable("a")
		p.awaitField("a", "amount", "double")
	}
	for n, kind := range []string{"keyword", "double", "keyword"} {
		w.put("S1", "first", map[string]string{"keyword": `"amount":"text"`, "double": `"amount":1`}[kind])
		w.trigger("S1", "first") // a rebuild takes what the last run counted for records of which nothing was said since
		stop := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() { w.keepChanging(ids, stop) })
		job := w.awaitJob(w.startRun("", "?rebuild=true"))
		close(stop)
		work.Wait()
		moved := time.Now()
		if e := job.Get("error"); e.Exists() && e.Get("message").String() != "S1: the list kept shifting while it was read" {
			t.Errorf("job %d is %s", n, job.Raw)
		}
		for _, p := range both {
			p.awaitField("a", "amount", kind)
		}
		if took := time.Since(moved); took > 10*time.Second {
			t.Errorf("the catalogues followed after %s", took)
		}
		w.awaitConverged(wait)
	}
}
