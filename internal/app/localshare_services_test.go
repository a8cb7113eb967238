//go:build services

package app_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/storetest"
)

// share is a world of several processes on one PostgreSQL, one queue and one index: the tests' own and its children.
type share struct {
	*builtIn
	urls     []string
	children []*child
}

func startShare(t *testing.T, children int, set settings) *share {
	t.Helper()
	set.queueURL = externalQueue(t)
	s := &share{builtIn: newBuiltIn(t, plan{set: set, store: storetest.PostgresURL(t)})}
	s.startReady()
	own := s.url
	s.urls = []string{own}
	for range children {
		s.children = append(s.children, s.startChild())
		s.urls = append(s.urls, s.url)
		s.awaitPaused(false)
	}
	s.url = own
	return s
}

// at returns the world as a client of its i-th process sees it.
func (s *share) at(i int) *builtIn {
	w := *s.world
	w.url = s.urls[i%len(s.urls)]
	return &builtIn{world: &w, store: s.store}
}

// metric returns the sum of a counter in GET /metrics over all processes, of the lines that contain all labels.
func (s *share) metric(name string, labels ...string) int {
	s.t.Helper()
	sum := 0.0
	for i := range s.urls {
		lines := bufio.NewScanner(bytes.NewReader(s.at(i).mustSend(http.MethodGet, "/metrics", "", http.StatusOK).raw))
		for lines.Scan() {
			line := lines.Text()
			if !strings.HasPrefix(line, name+"{") || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(line, l) }) {
				continue
			}
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			sum += v
		}
	}
	return int(sum)
}

// TestSharedRegistration: 50 registrations of one name at once, through two processes, make the versions 1 to 50, each of
// them what was sent for it.
func TestSharedRegistration(t *testing.T) {
	t.Parallel()
	const n = 50
	s := startShare(t, 1, settings{})
	versions := make([]int, n)
	var g sync.WaitGroup
	for i := range n {
		g.Go(func() {
			a, err := s.at(i).send(http.MethodPost, "/schemas", fmt.Sprintf(`{"name":"raced","schema":{"type":"object",`+
				`"required":["experiment"],"properties":{"experiment":{"type":"object","properties":{"n":{"const":%d}}}}}}`, i))
			if err != nil || a.status != http.StatusOK {
				t.Errorf("registration %d: %v %s", i, err, a.raw)
				return
			}
			versions[i] = int(a.get("version").Int())
		})
	}
	g.Wait()
	for i := range s.urls {
		for number, version := range versions {
			a := s.at(i).mustSend(http.MethodGet, fmt.Sprintf("/schemas/raced?version=%d", version), "", http.StatusOK)
			if got := a.get("schema.properties.experiment.properties.n.const").Int(); int(got) != number {
				t.Errorf("process %d: version %d is of registration %d, want %d", i, version, got, number)
			}
		}
		if got := s.at(i).mustSend(http.MethodGet, "/schemas/raced", "", http.StatusOK); got.get("version").Int() != n ||
			got.get("versions.#").Int() != n {
			t.Errorf("process %d: latest %s of %s versions", i, got.get("version"), got.get("versions.#"))
		}
	}
	slices.Sort(versions)
	for i, v := range versions {
		if v != i+1 {
			t.Fatalf("versions: %v", versions)
		}
	}
	// The latest counts at once in every process, also in one that knew the one before.
	s.mustSend(http.MethodPost, "/studies/S1", "", http.StatusOK)
	for i := range 4 {
		s.at(i).mustSend(http.MethodPost, "/schemas", plainType, http.StatusOK)
		for other := range s.urls {
			versioned := strings.Replace(s.payload("S1", ""), `"plain"`, fmt.Sprintf(`"plain","version":%d`, i+1), 1)
			s.at(other).mustSend(http.MethodPost, "/submit/S1", versioned, http.StatusOK)
		}
	}
}

// TestSharedEvents: changes through two processes at once are published to the queue once each.
func TestSharedEvents(t *testing.T) {
	t.Parallel()
	const n = 120
	s := startShare(t, 1, settings{})
	s.prepareStudies("S1", "S2")
	events := 0
	var mu sync.Mutex
	var g sync.WaitGroup
	for worker := range 8 {
		g.Go(func() {
			study := fmt.Sprintf("S%d", 1+worker%2)
			for i := range n / 8 {
				a, err := s.at(worker+i).send(http.MethodPost, "/submit/"+study, s.payload(study, ""))
				if err != nil || a.status != http.StatusOK {
					t.Errorf("submitting: %v %s", err, a.raw)
					return
				}
				id := a.get("analysisId").String()
				verbs := []string{"publish"}
				if i%4 == 3 { // by turns through both, so that each sees what the other did
					verbs = append(verbs, "unpublish", "publish", "suppress")[:2+i%3]
				}
				for j, verb := range verbs {
					a, err = s.at(worker+i+j).send(http.MethodPut, statePath(study, verb, id), "")
					if err != nil || a.status != http.StatusOK {
						t.Errorf("%s: %v %s", verb, err, a.raw)
						return
					}
					mu.Lock()
					events++
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	s.awaitConverged()
	s.eventually(wait, func() (bool, string) {
		got := s.metric("tutti_requests_received_total", `source="outbox"`)
		return got >= events, fmt.Sprintf("%d events were published, want %d", got, events)
	})
	if got := s.metric("tutti_requests_received_total", `source="outbox"`); got != events {
		t.Errorf("%d events were published, want %d, each once", got, events)
	}
	if got := s.metric("tutti_outbox_events_total", `result="published"`); got != events {
		t.Errorf("%d events were published, want %d", got, events)
	}
	if s.unpublishedEvents() != 0 {
		t.Error("events are left in the outbox")
	}
	mine := s.outboxCount()
	t.Logf("%d events, %d of them published by the first process; %d documents", events, mine, len(s.documents()))
	s.wantNoDeadLetters()
}

// TestSharedKilled: of three processes on one store, queue and index one is killed while clients submit and publish
// through all; nothing that was answered is lost, and nothing is there twice.
func TestSharedKilled(t *testing.T) {
	t.Parallel()
	s := startShare(t, 2, settings{})
	s.prepareStudies("S1", "S2")
	c := newClient()
	var doomed, others sync.WaitGroup
	ended := make(chan struct{})
	for i := range 9 {
		study := fmt.Sprintf("S%d", 1+i%2)
		if i%3 == 1 {
			doomed.Go(func() { c.work(s.builtIn, s.urls[1], study) })
			continue
		}
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
					c.once(s.at(i%3), s.payload(study, ""), study, n)
				}
			}
		})
	}
	s.eventually(wait, func() (bool, string) { n := c.count(); return n >= 60, fmt.Sprintf("%d published", n) })
	s.children[0].kill()
	doomed.Wait()
	before := c.count()
	s.eventually(wait, func() (bool, string) {
		n := c.count() - before
		return n >= 60, fmt.Sprintf("%d published after the kill", n)
	})
	close(ended)
	others.Wait()
	s.awaitConverged()
	c.check(s.builtIn)
	s.wantNoDeadLetters()
	if n := s.outcomes(core.OutcomeIndexed); n == 0 || n >= len(s.documents()) {
		t.Errorf("the first process wrote %d of %d documents: the work was not shared", n, len(s.documents()))
	}
}
