package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestRelay: events come in order, each once, and a rejected one is passed again with the same id.
func TestRelay(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		ids := w.published(5)
		wantEqual(t, w.pending(), 5)
		var first []datamodel.Change
		given, err := w.Relay(t.Context(), 3, func(_ context.Context, changes []datamodel.Change) []error {
			first = changes
			return []error{nil, errors.New("refused"), nil}
		})
		if err != nil || given != 3 {
			t.Fatal(given, err)
		}
		for i, c := range first {
			if c.AnalysisID != ids[i] || c.Study != S || c.ID == "" || c.At.IsZero() {
				t.Errorf("change %d: %+v", i, c)
			}
		}
		wantEqual(t, w.pending(), 3)
		rest := w.drain()
		wantEqual(t, len(rest), 3)
		wantEqual(t, rest[0], first[1])
		wantEqual(t, []string{rest[1].AnalysisID, rest[2].AnalysisID}, ids[3:])
		wantEqual(t, w.pending(), 0)
	})
}

// TestRelayOfATrace: a change has the span of the call that made it.
func TestRelayOfATrace(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("file")
		ctx, s := span.NewTracer(sdk.NewTracerProvider()).Consume(t.Context(), "publish", "")
		defer s.End(nil)
		if err := w.SetState(ctx, S, id, datamodel.StatePublished, false); err != nil {
			t.Fatal(err)
		}
		w.set(id, datamodel.StateUnpublished)
		changes := w.drain()
		wantEqual(t, len(changes), 2)
		if want := span.Traceparent(ctx); want == "" || changes[0].Traceparent != want || changes[1].Traceparent != "" {
			t.Errorf("the changes are %+v, want the first of %q", changes, want)
		}
	})
}

func TestRelayNothing(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		never := func(context.Context, []datamodel.Change) []error {
			t.Error("published nothing")
			return nil
		}
		if given, err := w.Relay(t.Context(), 1, never); given != 0 || err != nil {
			t.Error(given, err)
		}
		_, err := w.Relay(t.Context(), 0, never)
		wantError(t, err, core.CodeInvalid, "", "the number of events to relay must be at least 1")
	})
}

// TestRelayShortAnswer: a change without a result of publish counts as not published.
func TestRelayShortAnswer(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.published(3)
		given, err := w.Relay(t.Context(), 3, func(context.Context, []datamodel.Change) []error { return []error{nil} })
		if given != 3 || err != nil {
			t.Error(given, err)
		}
		wantEqual(t, w.pending(), 2)
	})
}

// TestRelayMany: more events than one statement removes.
func TestRelayMany(t *testing.T) {
	w := newFixture(t, storetest.Open(t), metadata.Config{})
	id := w.submit("a")
	for range 600 {
		w.set(id, datamodel.StatePublished)
	}
	given, err := w.Relay(t.Context(), 1000, func(context.Context, []datamodel.Change) []error { return nil })
	if given != 600 || err != nil {
		t.Error(given, err)
	}
	wantEqual(t, w.pending(), 0)
}

// TestConcurrentRelays: concurrent relays of several processes pass each event once.
func TestConcurrentRelays(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.published(60)
		relays := []*fixture{w}
		if w.store.Postgres() {
			relays = append(relays, newFixture(t, w.store, metadata.Config{}))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				for {
					given, err := relays[i%len(relays)].Relay(t.Context(), 7, func(_ context.Context, changes []datamodel.Change) []error {
						mu.Lock()
						defer mu.Unlock()
						for _, c := range changes {
							seen[c.ID]++
						}
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
					if given == 0 {
						return
					}
				}
			})
		}
		group.Wait()
		wantEqual(t, len(seen), 60)
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s was relayed %d times", id, n)
			}
		}
		wantEqual(t, w.pending(), 0)
	})
}

// TestRelayTakesOthers: while one process publishes events, another process on the same database relays the others without waiting.
func TestRelayTakesOthers(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		if !w.store.Postgres() {
			t.Skip("SQLite has one relay at a time")
		}
		ids := w.published(4)
		given, err := w.Relay(t.Context(), 3, func(context.Context, []datamodel.Change) []error {
			others := newFixture(t, w.store, metadata.Config{}).drain()
			if len(others) != 1 || others[0].AnalysisID != ids[3] {
				t.Errorf("others %+v", others)
			}
			return nil
		})
		if given != 3 || err != nil {
			t.Error(given, err)
		}
		wantEqual(t, w.pending(), 0)
	})
}

// TestRelayWhileChanging: events that are committed during a relay are not lost.
func TestRelayWhileChanging(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		const analyses = 40
		ids := make([]string, analyses)
		for i := range ids {
			ids[i] = w.submit(fmt.Sprint("f", i))
		}
		var group sync.WaitGroup
		for _, id := range ids {
			group.Go(func() {
				if err := w.SetState(t.Context(), S, id, datamodel.StatePublished, false); err != nil {
					t.Error(err)
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		seen := map[string]bool{}
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			case <-w.Changed():
			}
			for _, c := range w.drain() {
				seen[c.AnalysisID] = true
			}
		}
		wantEqual(t, len(seen), analyses)
	})
}

// TestRelayStops: waiting for another relay ends with the context, and events published just before the end are still removed.
func TestRelayStops(t *testing.T) {
	w := newFixture(t, storetest.Open(t), metadata.Config{})
	w.published(2)
	ctx, cancel := context.WithCancel(t.Context())
	given, err := w.Relay(ctx, 10, func(context.Context, []datamodel.Change) []error {
		cancel()
		_, err := w.Relay(ctx, 10, func(context.Context, []datamodel.Change) []error { return nil })
		wantError(t, err, core.CodeUnavailable, "", "waiting for another relay")
		return nil
	})
	if given != 2 || err != nil {
		t.Error(given, err)
	}
	wantEqual(t, w.pending(), 0)
}

// TestRefusedChangeWritesNoEvent: a change and its event are committed together or not at all.
func TestRefusedChangeWritesNoEvent(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.submit("taken")
		id := w.submit("a")
		w.set(id, datamodel.StatePublished)
		w.drain()
		body := w.body(id)
		err := w.Replace(t.Context(), S, id, []byte(payload("a", "taken")))
		wantError(t, err, core.CodeConflict, "duplicate.file", `the study already has files with the same MD5 sum: "taken"`)
		wantEqual(t, w.body(id), body)
		wantEqual(t, w.pending(), 0)
	})
}

// killed names the environment variable with the store's directory for the child process of TestKill.
const killed = "TUTTI_TEST_METADATA_KILL"

// TestKillChild is the child process of TestKill: it publishes analyses, prints each committed one, and relays some.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killed)
	if dir == "" {
		t.Skip("runs only as the child of TestKill")
	}
	w := newFixture(t, storetest.OpenConfig(t, store.Config{Dir: dir}), metadata.Config{})
	for i := 0; ; i++ {
		id := w.submit(fmt.Sprintf("%d-%d", os.Getpid(), i))
		w.set(id, datamodel.StatePublished)
		fmt.Println("committed", id)
		if i%3 == 2 {
			_, err := w.Relay(t.Context(), 2, func(_ context.Context, changes []datamodel.Change) []error {
				for _, c := range changes {
					fmt.Println("published", c.AnalysisID)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKill: a process killed at any instruction loses no event of a change that it reported as committed.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	printed := map[string]map[string]bool{"committed": {}, "published": {}}
	for round := range 3 {
		child := exec.CommandContext(t.Context(), self, "-test.run=^TestKillChild$")
		child.Env = append(os.Environ(), killed+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		chunk := make([]byte, 512)
		stopped := false
		for {
			n, err := out.Read(chunk)
			text.Write(chunk[:n])
			if !stopped && strings.Count(text.String(), "committed") >= 10+7*round {
				stopped = true
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				break
			}
		}
		if err := child.Wait(); err == nil || !stopped {
			t.Fatalf("the child exited: %v\n%s", err, text.String())
		}
		for line := range strings.Lines(text.String()) {
			what, id, whole := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if whole && strings.HasSuffix(line, "\n") && printed[what] != nil {
				printed[what][id] = true
			}
		}
	}
	w := newFixture(t, storetest.OpenConfig(t, store.Config{Dir: dir}), metadata.Config{})
	waiting := map[string]bool{}
	for _, c := range w.drain() {
		waiting[c.AnalysisID] = true
	}
	for id := range printed["committed"] {
		wantEqual(t, w.get(id, "analysisState"), "PUBLISHED")
		if !waiting[id] && !printed["published"][id] {
			t.Errorf("the event of %s is lost", id)
		}
	}
	if len(printed["committed"]) < 50 || len(printed["published"]) == 0 {
		t.Errorf("too little was tried: %d committed, %d published", len(printed["committed"]), len(printed["published"]))
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newFixture(t, storetest.Open(t), metadata.Config{Metrics: metadata.NewMetrics(reg)})
	id := w.submit("a")
	for _, state := range []datamodel.AnalysisState{datamodel.StatePublished, datamodel.StateUnpublished, datamodel.StatePublished} {
		w.set(id, state)
	}
	if err := errors.Join(w.Replace(t.Context(), S, id, []byte(payload("b"))), w.Merge(t.Context(), S, id, []byte(`{}`))); err != nil {
		t.Fatal(err)
	}
	w.set(id, datamodel.StateSuppressed)
	if err := w.Merge(t.Context(), S, id, []byte(`{}`)); err == nil {
		t.Fatal("merged")
	}
	want := `# HELP tutti_analyses_total Committed changes of analyses of the built-in repository, by action.
# TYPE tutti_analyses_total counter
tutti_analyses_total{action="merge"} 1
tutti_analyses_total{action="publish"} 2
tutti_analyses_total{action="replace"} 1
tutti_analyses_total{action="submit"} 1
tutti_analyses_total{action="suppress"} 1
tutti_analyses_total{action="unpublish"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
