package app_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tutti/internal/tools/testkit"
)

// sentChanges are changes of records that a client sends in one request.
type sentChanges struct {
	path, contentType, body string
	ids                     []string
	// whole: if the client gets no answer, either all of them are taken in or none.
	whole    bool
	accepted bool
}

// changesToSend adds records, and returns the requests of clients for them: lists of ids, notifications in arrays and alone, and triggers.
func (w *world) changesToSend(round int) (all []*sentChanges) {
	w.t.Helper()
	add := func(n int) (ids []string) {
		for i := range n {
			id := fmt.Sprintf("r%d-%d-%d", round, len(all), i)
			w.put("S1", id, "")
			ids = append(ids, id)
		}
		return ids
	}
	for i := range 3 {
		ids := add(100 + 1000*i) // up to 21 messages, and one of the job
		all = append(all, &sentChanges{path: runPath("S1") + "/ids", contentType: "text/plain", body: strings.Join(ids, "\n"), ids: ids, whole: true})
		ids = add(150) // two messages
		events := make([]string, len(ids))
		for i, id := range ids {
			events[i] = songEvent(code, "S1", id, "PUBLISHED")
		}
		all = append(all, &sentChanges{path: webhook, contentType: "application/json", body: "[" + strings.Join(events, ",") + "]", ids: ids})
	}
	for range 10 {
		ids := add(1)
		all = append(all, &sentChanges{path: webhook, contentType: "application/json", body: songEvent(code, "S1", ids[0], "PUBLISHED"), ids: ids, whole: true})
		ids = add(1)
		all = append(all, &sentChanges{path: recordPath("S1", ids[0]), ids: ids, whole: true})
	}
	return all
}

// TestIntakeKilled: a tutti that is killed while it takes changes in, on its own queue or on a server's, has lost none that it accepted, and of a
// list of ids whose client got no answer it has all or none.
func TestIntakeKilled(t *testing.T) {
	t.Parallel()
	for round := range testkit.Cases(2) {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			t.Parallel()
			set := settings{ackWait: time.Second}
			if round%2 == 1 {
				set.queueURL = externalQueue(t)
			}
			w := newWorld(t, set)
			var sent []*sentChanges
			for kill := range 5 {
				requests := w.changesToSend(kill)
				sent = append(sent, requests...)
				process := w.startChild()
				var clients sync.WaitGroup
				for _, r := range requests {
					clients.Go(func() {
						a, err := w.tryPostBody(r.path, r.body, "Content-Type", r.contentType)
						r.accepted = err == nil && a.status == http.StatusAccepted
						if err == nil && !r.accepted {
							t.Errorf("%s: %d %s", r.path, a.status, a.raw)
						}
					})
				}
				<-time.After(rand.N(150 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
				process.kill()
				clients.Wait()
			}
			process := w.startChild()
			k := &killRound{world: w, counts: &killCounts{}}
			k.live.Store(w)
			k.quiesce()
			w.processed(time.Minute) // what a crash left below the ack floor is no longer pending, and is found within half a minute
			if err := process.stop(); err != nil {
				t.Error(err)
			}
			w.start()
			w.checkSent(sent)
		})
	}
}

// checkSent compares the index with what was sent.
func (w *world) checkSent(sent []*sentChanges) {
	w.t.Helper()
	stored := w.documents()
	accepted, taken, lost := 0, 0, 0
	missing := false
	for _, r := range sent {
		n := 0
		for _, id := range r.ids {
			if _, there := stored[id]; there {
				n++
			}
		}
		switch {
		case r.accepted && n < len(r.ids):
			missing = true
			w.t.Errorf("%s was accepted, and %d of %d are in the index", r.path, n, len(r.ids))
		case r.whole && n > 0 && n < len(r.ids):
			w.t.Errorf("%s got no answer, and %d of %d are in the index", r.path, n, len(r.ids))
		}
		switch {
		case r.accepted:
			accepted++
		case n == 0:
			lost++
		default:
			taken++
		}
	}
	if missing {
		w.t.Logf("%d documents, %d when read again; dead letters: %v; the log:\n%s",
			len(stored), len(w.documents()), w.deadLetters("?limit=10"), strings.Join(w.logs.all(), "\n"))
	}
	w.t.Logf("%d requests accepted; of those without an answer %d were taken in and %d were not", accepted, taken, lost)
}
