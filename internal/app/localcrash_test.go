package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/metadata"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// client submits and publishes analyses in a loop until the server stops, and records the responses.
type client struct {
	mu sync.Mutex
	// submitted maps the number of a submission to the analysis id of the response; published holds the ids whose publish request
	// got 200.
	submitted map[int64]string
	published map[string]bool
	// asked holds the ids of all publish requests, numbered the numbers of all submissions.
	asked    map[string]bool
	numbered map[int64]bool
	// faults lists the responses that are errors of the server.
	faults []string
}

func newClient() *client {
	return &client{
		submitted: map[int64]string{}, published: map[string]bool{}, asked: map[string]bool{}, numbered: map[int64]bool{},
	}
}

// note calls change while it holds mu.
func (c *client) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.published)
}

// work calls once until it fails.
func (c *client) work(b *builtIn, url, study string) {
	own := *b.world
	own.url = url
	for n := 0; c.once(&builtIn{world: &own}, b.payload(study, ""), study, n); n++ {
	}
}

// once submits an analysis and publishes four of five. It reports false if a request failed or a response was unexpected.
func (c *client) once(b *builtIn, payload, study string, n int) bool {
	number := gjson.Get(payload, "experiment.number").Int()
	c.note(func() { c.numbered[number] = true })
	a, err := b.send(http.MethodPost, "/submit/"+study, payload)
	if err != nil {
		return false
	}
	id := a.get("analysisId").String()
	if a.status != http.StatusOK || id == "" {
		c.note(func() { c.faults = append(c.faults, fmt.Sprintf("submitting: %d %s", a.status, a.raw)) })
		return false
	}
	c.note(func() { c.submitted[number] = id })
	if n%5 == 4 {
		return true
	}
	c.note(func() { c.asked[id] = true })
	if a, err = b.send(http.MethodPut, statePath(study, "publish", id), ""); err != nil {
		return false
	}
	if a.status != http.StatusOK {
		c.note(func() { c.faults = append(c.faults, fmt.Sprintf("publishing: %d %s", a.status, a.raw)) })
		return false
	}
	c.note(func() { c.published[id] = true })
	return true
}

// check compares the answers with what the store and the index hold.
func (c *client) check(b *builtIn) {
	b.t.Helper()
	for _, f := range c.faults {
		b.t.Error(f)
	}
	kept, published, documents := b.storedAnalyses(everyState), b.storedAnalyses("PUBLISHED"), b.documents()
	times := map[int64]int{}
	for _, body := range kept {
		times[gjson.Get(body, "experiment.number").Int()]++
	}
	for number, n := range times {
		if n != 1 || !c.numbered[number] {
			b.t.Errorf("submission %d is kept %d times", number, n)
		}
	}
	for number, id := range c.submitted {
		if got := gjson.Get(kept[id], "experiment.number"); !got.Exists() || got.Int() != number {
			b.t.Errorf("submission %d was answered as %s and is lost: %s", number, id, kept[id])
		}
	}
	for id := range c.published {
		if published[id] == "" || documents[id] == "" {
			b.t.Errorf("%s was answered as published; published in the store: %t, in the index: %t",
				id, published[id] != "", documents[id] != "")
		}
	}
	for id := range documents {
		if !c.asked[id] {
			b.t.Errorf("%s is in the index, but was not published", id)
		}
	}
	b.t.Logf("%d submitted, %d published; %d kept, %d in the index", len(c.submitted), len(c.published), len(kept), len(documents))
}

// unpublishedEvents returns the number of outbox events that are not yet published, also while the server runs.
func (b *builtIn) unpublishedEvents() int {
	b.t.Helper()
	var n int
	b.storeOf(func(ctx context.Context, s *store.Store) {
		r, err := metadata.New(s, takes{}, metadata.Config{})
		if err == nil {
			n, err = r.Pending(ctx)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	})
	return n
}

// TestBuiltInKilled: after ten kills under load, every acknowledged write is stored and indexed, including events that were committed
// but not yet published to the queue.
func TestBuiltInKilled(t *testing.T) {
	t.Parallel()
	storetest.Configs(t, func(t *testing.T, cfg store.Config) {
		t.Parallel()
		b := newBuiltIn(t, plan{store: cfg.URL})
		c := newClient()
		met := 0
		for round := range 10 {
			process := b.startChild()
			if round == 0 {
				b.prepareStudies("S1", "S2")
			}
			url, before, until := b.url, c.count(), 1+rand.IntN(60)
			var clients sync.WaitGroup
			for i := range 8 {
				clients.Go(func() { c.work(b, url, fmt.Sprintf("S%d", 1+i%2)) })
			}
			b.eventually(wait, func() (bool, string) {
				n := c.count() - before
				return n >= until, fmt.Sprintf("%d published", n)
			})
			<-time.After(rand.N(20 * time.Millisecond)) // for nothing: the kill shall meet the process anywhere
			process.kill()
			clients.Wait()
			if b.unpublishedEvents() > 0 {
				met++
			}
		}
		t.Logf("%d of 10 kills left events in the outbox", met)
		if met == 0 {
			t.Error("no kill came while an event was in the outbox: that proves nothing")
		}
		b.startReady()
		b.awaitConverged()
		c.check(b)
		b.wantNoDeadLetters()
	})
}
