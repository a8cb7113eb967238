package catalogue_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

const (
	oneField  = `{"properties":{"k":{"type":"keyword"}}}`
	twoFields = `{"properties":{"k":{"type":"keyword"},"l":{"type":"long"}}}`
)

// reading is the result of reading an index.
type reading func(ctx context.Context) (json.RawMessage, error)

func gives(raw string) reading {
	return func(context.Context) (json.RawMessage, error) { return json.RawMessage(raw), nil }
}

func fails(sentinel error) reading {
	return func(context.Context) (json.RawMessage, error) {
		return nil, core.WrapError(core.CodeUnavailable, "secret", sentinel)
	}
}

func hangs(ctx context.Context) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, core.WrapError(core.CodeUnavailable, "secret", ctx.Err())
}

// engine returns configured results, and records the times of calls.
type engine struct {
	began time.Time

	mu      sync.Mutex
	indices map[string]reading
	asked   map[string][]time.Duration
}

func newEngine() *engine {
	return &engine{began: time.Now(), indices: map[string]reading{}, asked: map[string][]time.Duration{}}
}

func (e *engine) Mapping(ctx context.Context, name string) (json.RawMessage, error) {
	e.mu.Lock()
	e.asked[name] = append(e.asked[name], time.Since(e.began))
	read := e.indices[name]
	e.mu.Unlock()
	if read == nil {
		read = fails(core.ErrIndexMissing)
	}
	return read(ctx)
}

func (e *engine) set(name string, r reading) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.indices[name] = r
}

// seconds returns the times of calls for an index, in seconds since the start.
func (e *engine) seconds(name string) []float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []float64
	for _, at := range e.asked[name] {
		all = append(all, at.Seconds())
	}
	return all
}

// world is a Registry and its engine in a synctest bubble.
type world struct {
	*testing.T
	engine *engine
	r      *catalogue.Registry
	log    *strings.Builder
}

// in runs a test in a bubble, without jitter.
func in(t *testing.T, run func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, engine: newEngine(), log: &strings.Builder{}}
		run(w)
		if w.r != nil {
			w.stop()
		}
	})
}

// start starts a Registry of catalogues, each on the index of its name unless change sets another one.
func (w *world) start(defs []definition.Definition, change ...func(*catalogue.Config)) {
	w.Helper()
	cfg := catalogue.Config{
		Random: func() float64 { return 0 },
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
	}
	for _, f := range change {
		f(&cfg)
	}
	w.r = catalogue.New(defs, w.engine, cfg)
	if err := w.r.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) stop() {
	w.Helper()
	if err := w.r.Stop(context.WithoutCancel(w.Context())); err != nil {
		w.Error(err)
	}
}

// at sleeps until so many seconds after the start, and waits until everything is idle.
func (w *world) at(seconds float64) {
	time.Sleep(time.Until(w.engine.began.Add(time.Duration(seconds * float64(time.Second)))))
	synctest.Wait()
}

// state fails unless a catalogue has this problem, nil for none.
func (w *world) state(id string, want *core.CatalogueProblem) {
	w.Helper()
	c := w.r.Catalogues().ByID(id)
	if c == nil {
		w.Fatalf("%s is not listed", id)
	}
	if diff := cmp.Diff(want, c.Problem); diff != "" {
		w.Errorf("at %s %s (-want +got):\n%s", time.Since(w.engine.began), id, diff)
	}
	if m := w.r.Model(id); (m == nil) != (want != nil) || m != nil && m.Catalogue() != c {
		w.Errorf("%s has the model %v beside %+v", id, m, c.Problem)
	}
}

func (w *world) askedAt(index string, want ...float64) {
	w.Helper()
	if diff := cmp.Diff(want, w.engine.seconds(index)); diff != "" {
		w.Errorf("asked for %s at (-want +got):\n%s", index, diff)
	}
}

func these(ids ...string) []definition.Definition {
	defs := make([]definition.Definition, len(ids))
	for i, id := range ids {
		defs[i] = minimal(id)
	}
	return defs
}
