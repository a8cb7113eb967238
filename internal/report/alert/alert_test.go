package alert_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/report/alert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestInterval: the first event is sent at once, the others of the interval as one message with exact counts.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.job(core.JobFailed, 3) // before the first start of all
		defer stop(t, w.process(t, nil))
		time.Sleep(time.Minute)
		w.want(t, "")
		w.job(core.JobFailed, 1)
		time.Sleep(2 * time.Second)
		first := w.want(t, "job_failed 1")[0]
		if e := first.Examples[0]; e.JobID != "job-4" || e.Reason != "upstream_error" || e.Hint != "the repository did not answer" ||
			e.Link != "https://tutti.example.org/console/jobs/job-4" || first.Text != "1 job failed: song.a" || first.ID == "" {
			t.Errorf("%+v", first)
		}
		for range 4 {
			w.job(core.JobFailed, 250)
			w.job(core.JobSucceeded, 10)
			w.job(core.JobCancelled, 10)
			w.job(core.JobRunning, 10)
			time.Sleep(time.Minute)
		}
		w.job(core.JobPartial, 2) // another kind has its own interval
		time.Sleep(2 * time.Second)
		w.want(t, "job_partial 2")
		time.Sleep(time.Minute)
		summed := w.want(t, "job_failed 1000")[0]
		if summed.at-first.at < 5*time.Minute || summed.at-first.at > 5*time.Minute+2*time.Second || len(summed.Examples) != 5 ||
			summed.Counts["song.a"] != 1000 || summed.ID == first.ID {
			t.Errorf("%s after the first: %+v", summed.at-first.at, summed)
		}
		time.Sleep(time.Hour)
		w.want(t, "")
	})
}

// TestDrift: an ended job that has found differences is an event of its own, whatever its state.
func TestDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer stop(t, w.process(t, nil))
		job := core.Job{ID: "a", Repository: "song.a", State: core.JobRunning, Totals: core.Totals{Drift: core.Drift{Unchanged: 7}}}
		w.change(job)
		job.State = core.JobSucceeded
		w.change(job)
		time.Sleep(time.Minute)
		w.want(t, "")
		job.ID, job.Totals.Drift.Missing, job.Totals.Drift.Surplus = "b", 2, 1
		w.change(job)
		time.Sleep(2 * time.Second)
		found := w.want(t, "drift 1")[0]
		if e := found.Examples[0]; e.JobID != "b" || e.Hint != "2 documents missing, 0 different and 1 surplus" ||
			found.Text != "1 comparison has found differences: song.a" {
			t.Errorf("%+v", found)
		}
	})
}

// TestSelection: a target gets the events of its kinds and repositories; two targets with the same URL are different.
func TestSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b, c := target, target, target
		a.Kinds, b.Repositories, c.URL = []alert.Kind{alert.JobPartial}, []string{"song.b"}, "https://other.example.org"
		c.Kinds = []alert.Kind{alert.DeadLetters, alert.JobFailed}
		a.Token, b.Secret = "t0ken", "key"
		defer stop(t, w.process(t, nil, a, b, c))
		w.job(core.JobPartial, 1)
		time.Sleep(2 * time.Second)
		if got := w.want(t, "job_partial 1")[0]; got.header.Get("Authorization") != "Bearer t0ken" || got.header.Get("X-Signature-256") != "" {
			t.Errorf("%v", got.header)
		}
		w.change(core.Job{ID: "b", Repository: "song.b", State: core.JobPartial})
		time.Sleep(2 * time.Second)
		if got := w.want(t, "job_partial 1")[0]; !strings.HasPrefix(got.header.Get("X-Signature-256"), "key ") || got.header.Get("Authorization") != "" {
			t.Errorf("%v", got.header)
		}
		w.letter("song.a", 0)
		time.Sleep(2 * time.Second)
		w.want(t, "dead_letters 1")
		time.Sleep(10 * time.Minute)
		w.want(t, "job_partial 1") // of a, for song.b
	})
}

// TestLetters: dead letters count once, however often they are replaced, also when the first was never read.
func TestLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		old := w.letter("song.a", 0)
		defer stop(t, w.process(t, nil))
		w.letter("song.a", old)
		time.Sleep(2 * time.Second)
		w.want(t, "")
		one := w.letter("song.a", 0)
		w.letter("song.b", 0)
		w.letter("song.a", one) // replaces one that was not read
		time.Sleep(2 * time.Second)
		got := w.want(t, "dead_letters 2")[0]
		if got.Counts["song.a"] != 1 || got.Counts["song.b"] != 1 || got.Text != "2 new dead letters: song.a (1), song.b (1)" {
			t.Errorf("%+v", got)
		}
		for _, e := range got.Examples {
			if e.Organization != "S1" || !strings.HasPrefix(e.RecordID, "A") || e.Hint != "correct the record" || e.JobID != "job-1" ||
				!strings.HasPrefix(e.Link, "https://tutti.example.org/console/dead-letters/letter-") {
				t.Errorf("%+v", e)
			}
		}
		w.letter("song.a", one)
		w.letter("song.a", old)
		w.letter("gone", 0)
		time.Sleep(10 * time.Minute)
		w.want(t, "dead_letters 1")
		cut := func(on bool) { w.mu.Lock(); defer w.mu.Unlock(); w.cut = on }
		cut(true)
		other := w.letter("song.a", 0)
		time.Sleep(2 * time.Second)
		w.letter("song.a", other)
		time.Sleep(2 * time.Second)
		cut(false)
		time.Sleep(10 * time.Minute)
		w.want(t, "dead_letters 1")
	})
}

// TestRestored: a state that is ahead of the queue, as after a restore, repeats no alert.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.job(core.JobFailed, 3)
		w.letter("song.a", 0)
		w.cells["alerts.state"], w.revision = cell{`{"owner":"","jobs":9,"deadLetters":9}`, 1}, 1
		defer stop(t, w.process(t, nil))
		time.Sleep(time.Minute)
		w.want(t, "")
		w.job(core.JobFailed, 1)
		w.letter("song.a", 0)
		time.Sleep(2 * time.Second)
		w.want(t, "job_failed 1, dead_letters 1")
	})
}

// TestRetries: a message that is not taken is sent again, the same one, until it is; a 4xx drops it.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.answers = append(w.answers, answer(500), broken, answer(429, "Retry-After", "1200"), answer(301), answer(204))
		s := w.process(t, nil)
		defer stop(t, s)
		w.job(core.JobFailed, 1)
		time.Sleep(2 * time.Second)
		w.job(core.JobFailed, 2) // joins the next message
		time.Sleep(50 * time.Minute)
		got := w.want(t, "job_failed 1, job_failed 1, job_failed 1, job_failed 1, job_failed 1, job_failed 2")
		for _, g := range got[:5] {
			if g.ID != got[0].ID {
				t.Errorf("the id of a repetition is another one: %+v", g)
			}
		}
		if wait := got[1].at - got[0].at; wait < 2500*time.Millisecond || wait > 7*time.Second {
			t.Errorf("the first retry after %s", wait)
		}
		if wait := got[3].at - got[2].at; wait < 20*time.Minute || wait > 20*time.Minute+2*time.Second {
			t.Errorf("the retry after Retry-After: 1200 came after %s", wait)
		}
		w.answers = append(w.answers, answer(404))
		w.job(core.JobFailed, 1)
		time.Sleep(10 * time.Minute)
		w.want(t, "job_failed 1")
		w.job(core.JobFailed, 1)
		time.Sleep(10 * time.Minute)
		w.want(t, "job_failed 1")
		logs := w.logs.String()
		if strings.Contains(logs, "s3cret") || strings.Count(logs, "is dropped") != 1 || !strings.Contains(logs, "status 404: said") {
			t.Errorf("the log is wrong:\n%s", logs)
		}
	})
}

// TestSlowReceiver: one receiver that does not answer does not delay another one, and its messages end.
func TestSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		other := target
		other.URL = "https://other.example.org"
		w.answers = append(w.answers, func(r *http.Request) (*http.Response, error) {
			w.mu.Unlock()
			defer w.mu.Lock()
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		defer stop(t, w.process(t, nil, target, other))
		w.job(core.JobFailed, 1)
		time.Sleep(3 * time.Second)
		w.want(t, "job_failed 1, job_failed 1")
		time.Sleep(7 * time.Second)
		w.want(t, "")
		time.Sleep(time.Minute)
		w.want(t, "job_failed 1")
		if logs := w.logs.String(); !strings.Contains(logs, "request timed out after 10s") {
			t.Error(logs)
		}
	})
}

// TestProcesses: of several processes one sends each alert, and after its end another one the rest.
func TestProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b := w.process(t, nil), w.process(t, nil)
		w.job(core.JobFailed, 1)
		time.Sleep(2 * time.Second)
		w.want(t, "job_failed 1")
		w.job(core.JobFailed, 3)
		time.Sleep(2 * time.Second)
		stop(t, a)
		w.job(core.JobFailed, 4)
		time.Sleep(5 * time.Minute)
		w.want(t, "job_failed 7")
		stop(t, b)
		w.job(core.JobFailed, 5)
		w.letter("song.a", 0)
		time.Sleep(time.Hour) // no process
		defer stop(t, w.process(t, nil))
		time.Sleep(2 * time.Second)
		w.want(t, "job_failed 5, dead_letters 1")
	})
}

// TestLostAnswer: when the answer to a write is lost, nothing is sent twice, and a stop just then lets the next process continue at once.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.process(t, nil)
		w.loseAnswer()
		w.job(core.JobFailed, 1)
		time.Sleep(3 * time.Second)
		w.want(t, "job_failed 1")
		w.loseAnswer()
		w.job(core.JobFailed, 2)
		for w.losing() {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		stop(t, s)
		defer stop(t, w.process(t, nil))
		w.job(core.JobPartial, 1)
		time.Sleep(2 * time.Second)
		w.want(t, "job_partial 1")
		time.Sleep(5 * time.Minute)
		w.want(t, "job_failed 2")
	})
}

// TestCrash: what a process that ended without a word had stored and not sent is sent by the next one, with the same id; and it takes
// over only once the silence is long enough.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.answers = append(w.answers, answer(200), broken)
		s := w.process(t, nil)
		w.job(core.JobFailed, 1)
		time.Sleep(2 * time.Second)
		w.want(t, "job_failed 1")
		w.job(core.JobFailed, 2)
		time.Sleep(4*time.Minute + 59*time.Second)
		time.Sleep(1500 * time.Millisecond) // less than until the retry
		lost := w.want(t, "job_failed 2")[0]
		crashed := newWorld()
		crashed.cells["alerts.state"], crashed.revision, crashed.jobs = w.cells["alerts.state"], w.revision, w.jobs
		stop(t, s) // releases in w, not in crashed
		crashed.job(core.JobFailed, 3)
		defer stop(t, crashed.process(t, nil))
		time.Sleep(15 * time.Second)
		crashed.want(t, "")
		time.Sleep(10 * time.Second)
		if again := crashed.want(t, "job_failed 2")[0]; again.ID != lost.ID {
			t.Errorf("%q is sent again as %q", lost.ID, again.ID)
		}
		time.Sleep(10 * time.Minute)
		crashed.want(t, "job_failed 3")
	})
}

// TestQueueDown: while the queue does not answer nothing is sent twice, and nothing is lost.
func TestQueueDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer stop(t, w.process(t, nil))
		w.mu.Lock()
		w.down = true
		w.mu.Unlock()
		w.job(core.JobFailed, 2)
		time.Sleep(time.Minute)
		w.want(t, "")
		w.mu.Lock()
		w.down = false
		w.mu.Unlock()
		time.Sleep(2 * time.Second)
		w.want(t, "job_failed 2")
		time.Sleep(time.Hour)
		w.want(t, "")
	})
}

// TestPauses: a pause is announced once with its reason, whichever process has it, and its end.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var mu sync.Mutex
		pauses := map[string][]alert.Pause{"a": {{Repository: "song.a", Reason: "not checked", Starting: true}}}
		of := func(process string) func() []alert.Pause {
			return func() []alert.Pause { mu.Lock(); defer mu.Unlock(); return pauses[process] }
		}
		set := func(process string, p ...alert.Pause) { mu.Lock(); defer mu.Unlock(); pauses[process] = p }
		a := w.process(t, of("a"))
		b := w.process(t, of("b"))
		time.Sleep(2 * time.Second)
		w.want(t, "") // starting is no pause
		set("a")
		set("b", alert.Pause{Repository: "song.b", Reason: "the disk is full"})
		time.Sleep(3 * time.Second)
		if e := w.want(t, "repository_paused 1")[0].Examples[0]; e.Repository != "song.b" || e.Reason != "the disk is full" {
			t.Errorf("%+v", e)
		}
		set("a", alert.Pause{Repository: "song.b", Reason: "the disk is full here too"})
		time.Sleep(10 * time.Minute)
		set("b")
		time.Sleep(2 * time.Second)
		w.want(t, "") // a still has it
		set("a")
		time.Sleep(5 * time.Second)
		if e := w.want(t, "repository_resumed 1")[0].Examples[0]; e.Repository != "song.b" || !strings.HasPrefix(e.Reason, "was paused for 10m") {
			t.Errorf("%+v", e)
		}

		w.change(core.Job{ID: "p", Repository: "song.c", State: core.JobPaused, Pause: &core.JobPause{Reason: "waiting"}})
		time.Sleep(3 * time.Second)
		w.want(t, "repository_paused 1")
		stop(t, a)
		stop(t, b)
		set("c", alert.Pause{Repository: "song.c", Starting: true})
		w.change(core.Job{ID: "p", Repository: "song.c", State: core.JobRunning}) // while no process leads
		c := w.process(t, of("c"))
		time.Sleep(10 * time.Minute)
		w.want(t, "") // not yet known whether it can be indexed
		set("c")
		time.Sleep(5 * time.Second)
		w.want(t, "repository_resumed 1")

		// A process that ended without withdrawing its report.
		w.mu.Lock()
		w.revision++
		w.cells["alerts.pauses"] = cell{`{"dead":{"beat":1,"paused":{"song.d":"broken"}}}`, w.revision}
		w.mu.Unlock()
		time.Sleep(10 * time.Minute)
		w.want(t, "repository_paused 1, repository_resumed 1")
		w.mu.Lock()
		if _, there := w.cells["alerts.pauses"]; there {
			t.Error("the report of a dead process is not removed")
		}
		w.mu.Unlock()

		// A run that gives up ends the pause, too.
		w.change(core.Job{ID: "q", Repository: "song.e", State: core.JobPaused})
		time.Sleep(10 * time.Minute)
		w.want(t, "repository_paused 1")
		w.change(core.Job{ID: "q", Repository: "song.e", State: core.JobFailed})
		time.Sleep(10 * time.Minute)
		if got := w.want(t, "job_failed 1, repository_resumed 1")[1]; got.Text != "1 pause of a repository has ended: song.e" ||
			got.Examples[0].Reason != "was paused for 10m0s; a job that waited for it has failed" {
			t.Errorf("%+v", got)
		}
		stop(t, c)
	})
}

// TestPausesOfTwo: a pause ends when the last process says so, although its report comes a poll later than that of the others; a
// process that stops while others change their reports leaves none behind.
func TestPausesOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var mu sync.Mutex
		pauses := make(map[string][]alert.Pause)
		of := func(process string) func() []alert.Pause {
			return func() []alert.Pause { mu.Lock(); defer mu.Unlock(); return pauses[process] }
		}
		set := func(process string, p ...alert.Pause) { mu.Lock(); defer mu.Unlock(); pauses[process] = p }
		down := alert.Pause{Repository: "song.a", Reason: "the index does not answer"}
		a := w.process(t, of("a"))
		time.Sleep(500 * time.Millisecond)
		b := w.process(t, of("b")) // polls half a second after a
		time.Sleep(10*time.Second + 600*time.Millisecond)
		set("a", down)
		time.Sleep(1500 * time.Millisecond)
		w.want(t, "repository_paused 1")
		set("b", down)
		set("a")
		time.Sleep(10 * time.Minute)
		w.want(t, "") // b still has it
		set("a", down)
		time.Sleep(2 * time.Second)
		w.conflict(3)
		stop(t, a)
		set("b")
		time.Sleep(10 * time.Second)
		w.want(t, "repository_resumed 1")
		time.Sleep(10 * time.Minute)
		w.want(t, "")
		stop(t, b)
	})
}
