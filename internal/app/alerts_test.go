package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/ingest/signing"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// alertReceiver receives alerts, and counts the events of each kind that it took.
type alertReceiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	status   int // of its answers
	refused  int
	messages []gjson.Result
}

const alertSecret = "alerts-s3cret"

func newAlertReceiver(t *testing.T) *alertReceiver {
	t.Helper()
	r := &alertReceiver{t: t, status: http.StatusOK}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP checks the signature of a message and stores it, or refuses it.
func (r *alertReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil || signing.Check(alertSecret, body, request.Header.Get("X-Signature-256")) != nil {
		r.t.Errorf("an alert without a valid signature: %s, %v", body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != http.StatusOK {
		r.refused++
		w.WriteHeader(r.status)
		return
	}
	r.messages = append(r.messages, gjson.ParseBytes(body))
}

// answer sets the status of the next answers.
func (r *alertReceiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// config is the configuration of a tutti that sends its alerts here.
func (r *alertReceiver) config() string {
	return fmt.Sprintf("alerts: [{url: %q, secret: %s}]\n", r.URL+"/hook", alertSecret)
}

// await waits until the messages of kinds have counted exactly the events of want, as in "job_failed 1 dead_letters 2", and returns
// the examples of all.
func (r *alertReceiver) await(w *world, want string) (examples []gjson.Result) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		counts := make(map[string]int64)
		var all []string
		examples = nil
		for _, m := range r.messages {
			counts[m.Get("event").String()] += m.Get("count").Int()
			all = append(all, m.Raw)
			examples = append(examples, m.Get("examples").Array()...)
		}
		fields := strings.Fields(want)
		for i := 0; i < len(fields); i += 2 {
			if fmt.Sprint(counts[fields[i]]) != fields[i+1] {
				return false, strings.Join(all, "\n")
			}
			delete(counts, fields[i])
		}
		return len(counts) == 0, strings.Join(all, "\n")
	})
	return examples
}

// TestAlerts: a rejected record, a run that ends partial, a repository that goes down and comes back, and a run that fails are each
// alerted with what an operator needs.
func TestAlerts(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	w := startWorld(t, settings{pageSize: 50, more: r.config()})
	w.put("S1", "bad-1", broken)
	job := w.run("S1", "", core.JobPartial).Get("id").String()
	for _, e := range r.await(w, "dead_letters 1 job_partial 1") {
		if e.Get("jobId").String() != job || e.Get("repository").String() != code || e.Get("organization").String() != "S1" {
			t.Errorf("the example %s does not name job %s", e.Raw, job)
		}
		if id := e.Get("recordId").String(); id != "" && (id != "bad-1" || e.Get("hint").String() == "" ||
			!strings.HasPrefix(e.Get("link").String(), "/console/dead-letters/") ||
			!strings.Contains(string(w.mustRequest(http.MethodGet, e.Get("link").String(), http.StatusOK).raw), id)) {
			t.Errorf("the example %s does not describe the record", e.Raw)
		}
	}
	w.put("S1", "bad-1", fixed)
	w.fill("S1", 200)
	w.song.Fail(testkit.Fault{Skip: 2, Status: http.StatusServiceUnavailable})
	job = w.startRun("S1", "")
	all := r.await(w, "dead_letters 1 job_partial 1 repository_paused 1")
	if e := all[len(all)-1]; !strings.Contains(e.Get("reason").String(), "503") || e.Get("repository").String() != code {
		t.Errorf("the example of the pause: %s", e.Raw)
	}
	w.stop()
	w.start()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.get("components.upstream").String() == "degraded", string(a.raw)
	})
	r.await(w, "dead_letters 1 job_partial 1 repository_paused 1") // not again after a restart
	w.song.ClearFaults()
	w.awaitJob(job)
	r.await(w, "dead_letters 1 job_partial 1 repository_paused 1 repository_resumed 1")
	w.song.Fail(testkit.Fault{Status: http.StatusForbidden})
	job = w.run("", "", core.JobFailed).Get("id").String()
	all = r.await(w, "dead_letters 1 job_partial 1 repository_paused 1 repository_resumed 1 job_failed 1")
	if e := all[len(all)-1]; e.Get("jobId").String() != job || e.Get("hint").String() == "" || e.Get("link").String() != "/console/jobs/"+job {
		t.Errorf("the example of the job %s: %s", job, e.Raw)
	}
	w.eventually(wait, func() (bool, string) { // it is counted once the receiver's response was read
		n := w.metric("tutti_alerts_sent_total", "result", "sent")
		return n >= 2, fmt.Sprint("tutti_alerts_sent_total is ", n)
	})
	if logs := strings.Join(w.logs.all(), ""); strings.Contains(logs, alertSecret) || strings.Contains(logs, "/hook") {
		t.Error("the log shows the secret or the URL")
	}
}

// TestAlertsAfterRestart: what happens while a receiver is down is delivered once it answers, by the next process too.
func TestAlertsAfterRestart(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	r.answer(http.StatusBadGateway)
	w := startWorld(t, settings{more: r.config()})
	w.reject("S1", 3)
	w.eventually(wait, func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.refused > 0, fmt.Sprint(r.refused)
	})
	w.reject("S2", 4)
	w.stop()
	r.answer(http.StatusOK)
	w.start()
	r.await(w, "dead_letters 7")
}

// TestAlertsOfTwo: two processes alert each event once, whichever of them it happens in, and the second continues after the first.
func TestAlertsOfTwo(t *testing.T) {
	t.Parallel()
	r := newAlertReceiver(t)
	p := startPair(t, settings{more: r.config()})
	p.reject("S1", 5)
	r.await(p.world, "dead_letters 5")
	p.engine.setDown(true)
	p.fill("S1", 1)
	p.trigger("S1", p.song.Analyses("S1")[0].ID)
	p.awaitPaused(true)
	r.await(p.world, "dead_letters 5 repository_paused 1")
	p.engine.setDown(false)
	r.await(p.world, "dead_letters 5 repository_paused 1 repository_resumed 1")
	if err := p.app.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	p.app, p.url = p.second, p.second.URL()
	p.reject("S2", 2)
	r.await(p.world, "dead_letters 7 repository_paused 1 repository_resumed 1")
}
