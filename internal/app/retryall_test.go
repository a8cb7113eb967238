package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/testkit"
)

// largeAnalysis returns an analysis of at least size bytes, whose files have random names as those of Song do.
func largeAnalysis(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	hex := func(n int) string {
		digits := make([]byte, n)
		for i := range digits {
			digits[i] = "0123456789abcdef"[random.IntN(16)]
		}
		return string(digits)
	}
	doc := []byte(`{"analysisId":"` + hex(32) + `","analysisState":"PUBLISHED","studyId":"S1","files":[`)
	for n := 0; len(doc) < size; n++ {
		doc = fmt.Appendf(doc, `{"objectId":%q,"fileName":"%s.vcf.gz","fileSize":%d,"fileType":"VCF","fileAccess":"controlled","dataType":"SNV","fileMd5sum":%q},`,
			hex(8)+"-"+hex(4)+"-"+hex(4)+"-"+hex(4)+"-"+hex(12), hex(12), random.IntN(1<<40), hex(32))
	}
	return append(doc[:len(doc)-1], "]}"...)
}

// seedLetters stores n dead letters of records that the Song server does not have, and one that cannot be retried, into the queue of a
// world that is not started.
func (w *world) seedLetters(n int) {
	w.t.Helper()
	server, err := embedded.Start(w.t.Context(), embedded.Config{Dir: filepath.Join(w.dir, "queue"), SyncLater: true})
	if err != nil {
		w.t.Fatal(err)
	}
	q, err := queue.ConnectInProcess(w.t.Context(), server, queue.Config{MaxDeadLetterBodies: max(1, n/20)})
	if err != nil {
		w.t.Fatal(err)
	}
	document := largeAnalysis(20 << 10)
	putting, ctx := errgroup.WithContext(w.t.Context())
	putting.SetLimit(64)
	for i := range n + 1 {
		l := core.DeadLetter{
			Repository: code, Organization: "S1", RecordID: fmt.Sprintf("gone-%06d", i), Reason: core.ReasonRejected, Attempts: 1,
			EngineReason: strings.Repeat("failed to parse ", 10), Document: document, Size: len(document), Version: core.Version(time.Now().UnixNano()),
		}
		if i == n {
			l.RecordID, l.Reason = strings.Repeat("x", 600), core.ReasonInvalidID
		}
		putting.Go(func() error { return q.DeadLetters().Put(ctx, l) })
	}
	if err := putting.Wait(); err != nil {
		w.t.Fatal(err)
	}
	stop := context.WithoutCancel(w.t.Context())
	if err := q.Close(stop); err != nil {
		w.t.Fatal(err)
	}
	if err := server.Stop(stop); err != nil {
		w.t.Fatal(err)
	}
}

// retryAll requests the retry of all dead letters that a query selects, and returns its job.
func (w *world) retryAll(query string) string {
	w.t.Helper()
	a := w.mustRequest(http.MethodPost, "/dead-letters/retry"+query, http.StatusAccepted)
	id := a.get("jobId").String()
	if id == "" || !a.get("successful").Bool() || a.header.Get("Location") != "/jobs/"+id {
		w.t.Fatalf("the answer to a retry of all: %s, Location %q", a.raw, a.header.Get("Location"))
	}
	return id
}

// leave sends a request and closes the connection without reading the response.
func (w *world) leave(request string) {
	w.t.Helper()
	conn, err := new(net.Dialer).DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")); err != nil {
		w.t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// TestRetryAllOfOneWhoLeaves: a client that leaves as soon as it has sent the request gets all of it.
func TestRetryAllOfOneWhoLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.put("S1", "A", "")
	w.seedLetters(700)
	w.start()
	w.leave("POST /dead-letters/retry?repository=" + code)
	w.awaitDeadLetters("?limit=1000", 1)
	jobs := w.mustRequest(http.MethodGet, "/jobs", http.StatusOK).get("jobs").Array()
	if len(jobs) != 1 {
		t.Fatalf("jobs %s", jobs)
	}
	if j := w.awaitJob(jobs[0].Get("id").String()); j.Get("scope").String() != "retry" || j.Get("repository").String() != code ||
		j.Get("totals.retried").Int() != 700 || j.Get("totals.rejected").Int() != 1 || j.Get("state").String() != "partial" ||
		j.Get("error.code").String() != core.JobErrorNotRetryable {
		t.Errorf("the job: %s", j.Raw)
	}
}

// TestRetryAllCancelled: a retry that is cancelled in the middle, here while it waits until the queue has room, keeps its counts.
func TestRetryAllCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{maxPending: 2000})
	w.put("S1", "A", "")
	w.seedLetters(2500)
	w.start()
	goOn := make(chan struct{})
	t.Cleanup(func() { close(goOn) })
	w.song.Fail(testkit.Fault{Path: regexp.MustCompile("gone-"), Release: goOn})
	id := w.retryAll("")
	w.eventually(wait, func() (bool, string) {
		j := w.job(id)
		if n := j.Get("totals.fetched").Int(); n > 0 && (n >= 2501 || j.Get("totals.expected").Int() != 2501 || j.Get("state").String() != string(core.JobRunning)) {
			t.Errorf("the progress of the job: %s", j.Raw)
		}
		return j.Get("totals.fetched").Int() > 0, j.Raw
	})
	if again := w.retryAll(""); again != id {
		t.Errorf("the same filter has job %s beside %s", again, id)
	}
	cancelled := w.mustRequest(http.MethodDelete, "/jobs/"+id, http.StatusOK)
	if state := cancelled.get("state").String(); state != "cancelled" {
		t.Fatalf("state %s", cancelled.raw)
	}
	job := w.job(id)
	n := job.Get("totals.retried").Int()
	if n == 0 || n >= 2500 || job.Get("totals.fetched").Int() != n+1 || job.Get("totals.rejected").Int() != 1 || job.Get("error.code").String() != "cancelled" {
		t.Errorf("the job: %s", job.Raw)
	}
	if next := w.retryAll(""); next == id {
		t.Error("the cancelled job was returned")
	}
}

// TestRetryAllKilled: a retry that a SIGKILL interrupts goes on after the next start, until every dead letter was retried.
func TestRetryAllKilled(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			const n = 1500
			w := newWorld(t, settings{})
			w.put("S1", "A", "")
			w.seedLetters(n)
			process := w.startChild()
			id := w.retryAll("?reason=rejected")
			w.eventually(wait, func() (bool, string) {
				j := w.job(id)
				return round == 0 || j.Get("totals.fetched").Int() > int64(round-1)*512, j.Raw
			})
			process.kill()

			w.start()
			j := w.awaitJob(id)
			if j.Get("state").String() != string(core.JobSucceeded) || j.Get("totals.fetched").Int() != j.Get("totals.expected").Int() {
				t.Errorf("the job ended %s", j.Raw)
			}
			w.awaitDeadLetters("?limit=1000", 1)
			if next := w.awaitJob(w.retryAll("?reason=rejected")); next.Get("totals.fetched").Int() != 0 || next.Get("id").String() == id {
				t.Errorf("the next job: %s", next.Raw)
			}
		})
	}
}

// TestRetryAllMany: the retry of many dead letters needs no more memory for more of them. TUTTI_TEST_DEAD_LETTERS sets how many. Of so many
// that it takes a while, the progress is seen, and the job is cancelled before the retry that does all.
func TestRetryAllMany(t *testing.T) {
	t.Setenv("GOGC", "100") // the product's, whatever the tests run with
	n, limit := 2000, wait
	many := false
	if text := os.Getenv("TUTTI_TEST_DEAD_LETTERS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		limit, many = 20*time.Minute, n >= 50_000
	}
	w := newWorld(t, settings{})
	w.put("S1", "A", "")
	began := time.Now()
	w.seedLetters(n)
	t.Logf("stored %d dead letters in %s", n, time.Since(began).Round(time.Millisecond))
	process := w.startChild()
	w.awaitReady()
	before, began := process.anonymous(t), time.Now()
	done := 0
	if many {
		w.cancelRetry(n)
		done = n + 1 - w.processed(limit) // exactly: a page that the cancelled job published may not be in its counts
		began = time.Now()
	}
	id := w.retryAll("")
	answered, most := time.Since(began), before
	w.eventually(limit, func() (bool, string) {
		most = max(most, process.anonymous(t))
		j := w.job(id)
		return core.JobState(j.Get("state").String()).Final(), j.Raw
	})
	ended := time.Since(began)
	job := w.job(id)
	if retried := job.Get("totals.retried").Int(); retried != int64(n-done) || job.Get("totals.rejected").Int() != 1 ||
		job.Get("totals.expected").Int() != job.Get("totals.fetched").Int() {
		t.Errorf("the job: %s", job.Raw)
	}
	w.eventually(limit, func() (bool, string) {
		most = max(most, process.anonymous(t))
		left := len(w.deadLetters("?limit=10"))
		return left == 1, fmt.Sprint(left, " dead letters")
	})
	const megabyte, bound = 1_000_000, 100
	peak := (most - before) / megabyte
	t.Logf("%d dead letters: answered after %s, the job ended after %s, all were processed after %s",
		n, answered.Round(time.Millisecond), ended.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	t.Logf("a retry of %-7d dead letters: peak %d MB more than the %d MB before, bound %d MB", n, peak, before/megabyte, bound)
	if peak > bound {
		t.Errorf("the memory of the process grew by %d MB", peak)
	}
}

// cancelRetry retries all of n dead letters, cancels the job when a tenth of them was retried. The job must say in between how many it has
// retried, and end at once.
func (w *world) cancelRetry(n int) {
	w.t.Helper()
	id := w.retryAll("")
	seen := map[int64]bool{}
	w.eventually(wait, func() (bool, string) {
		j := w.job(id)
		fetched := j.Get("totals.fetched").Int()
		if fetched > 0 && j.Get("totals.expected").Int() != int64(n)+1 {
			w.t.Errorf("the progress of the job: %s", j.Raw)
		}
		seen[fetched] = true
		return fetched >= int64(n/10), j.Raw
	})
	began := time.Now()
	w.mustRequest(http.MethodDelete, "/jobs/"+id, http.StatusOK)
	took := time.Since(began)
	j := w.job(id)
	retried := int(j.Get("totals.retried").Int())
	w.t.Logf("%d of %d dead letters were retried until the job was cancelled, in %s; the job showed %d numbers before", retried, n, took.Round(time.Millisecond), len(seen))
	if retried == 0 || retried >= n/2 || len(seen) < 5 || j.Get("state").String() != string(core.JobCancelled) {
		w.t.Errorf("%d numbers were seen; the job is %s", len(seen), j.Raw)
	}
}

// processed waits until no Request is left and returns the number of dead letters.
func (w *world) processed(limit time.Duration) int {
	w.t.Helper()
	letters := 0
	w.eventually(limit, func() (bool, string) {
		requests := w.total("tutti_queue_requests")
		letters = w.total("tutti_dead_letters")
		return requests == 0, fmt.Sprint(requests, " requests")
	})
	return letters
}

// anonymous returns the anonymous resident memory of the child in bytes, 0 where the system does not tell.
func (c *child) anonymous(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "\nRssAnon:")
	kilobytes, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(kilobytes, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
