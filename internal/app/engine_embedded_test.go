//go:build !services

package app_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tutti/internal/app"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// embeddedEngine is the index in process. The test opens a faulty one, which outlives the app.
type embeddedEngine struct{ faulty *faultyIndex }

func newEngine(t *testing.T, w *world) engine {
	t.Helper()
	if !w.set.faulty {
		return &embeddedEngine{}
	}
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(w.dir, "faulty")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return &embeddedEngine{faulty: &faultyIndex{Index: x, rates: [...]float64{
		w.set.rates.TooManyRequests, w.set.rates.Unavailable, w.set.rates.ResetRequest, w.set.rates.ResetResponse,
		w.set.rates.Cut,
	}}}
}

func (e *embeddedEngine) url() string { return "" }

func (e *embeddedEngine) openSearch() bool { return false }

// runtimeFields is false: the embedded index refuses them.
func (e *embeddedEngine) runtimeFields() bool { return false }

func (e *embeddedEngine) replace(opts *app.Options) {
	if e.faulty != nil {
		opts.Index = e.faulty
	}
}

func (e *embeddedEngine) setDown(down bool)    { e.faulty.down.Store(down) }
func (e *embeddedEngine) injectFaults(on bool) { e.faulty.on.Store(on) }
func (e *embeddedEngine) faults() (whole, items int64) {
	return e.faulty.whole.Load(), e.faulty.items.Load()
}

func (e *embeddedEngine) largestBulk() (int64, bool) { return 0, false }

func (e *embeddedEngine) documents(w *world) map[string][]byte {
	w.t.Helper()
	var x index.Index
	if e.faulty != nil {
		x = e.faulty.Index
	} else {
		x = w.app.Index()
	}
	ctx := context.WithoutCancel(w.t.Context())
	if err := x.Refresh(ctx, w.alias); err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	err := x.Scan(ctx, w.alias, core.IndexScope{}, 0, func(id string, _ core.Version) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	documents := make(map[string][]byte, len(ids))
	for _, id := range ids {
		stored, found, err := x.Get(ctx, w.alias, id)
		if err != nil {
			w.t.Fatal(err)
		}
		if found { // it may have been removed since
			documents[id] = append([]byte(nil), stored.Source...)
		}
	}
	return documents
}

// faultyIndex injects the faults of a FaultProxy into the embedded index, and refuses single documents.
type faultyIndex struct {
	index.Index

	// rates are those of 429, 503, a reset before the request, a reset after it, and an answer cut short.
	rates        [5]float64
	on, down     atomic.Bool
	whole, items atomic.Int64
}

func gone() error { return core.NewError(core.CodeUnavailable, "the index does not answer") }

// Write fails as a whole, answers too little, or writes a part and puts the rest off.
func (x *faultyIndex) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if x.down.Load() {
		return nil, gone()
	}
	if !x.on.Load() {
		return x.Index.Write(ctx, b)
	}
	draw := rand.Float64()
	for kind, rate := range x.rates {
		if draw -= rate; draw >= 0 {
			continue
		}
		x.whole.Add(1)
		switch kind {
		case 0, 1:
			return nil, core.NewError(core.CodeOverloaded, "the index has too much to do")
		case 2:
			return nil, gone()
		case 3:
			_, _ = x.Index.Write(ctx, b)
			return nil, gone()
		default:
			results, err := x.Index.Write(ctx, b)
			return results[:len(results)/2], err
		}
	}
	taken := len(b.Items) - rand.IntN(2)*rand.IntN(len(b.Items)+1)
	results := make([]core.Result, len(b.Items))
	for i := taken; i < len(results); i++ {
		x.items.Add(1)
		results[i] = core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded, Type: "es_rejected_execution_exception"}
	}
	if taken == 0 {
		return results, nil
	}
	written, err := x.Index.Write(ctx, b.Slice(0, taken))
	copy(results, written)
	return results, err
}

// The other methods of the port fail only while the engine is down.

func (x *faultyIndex) Ensure(ctx context.Context, spec index.Spec) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Ensure(ctx, spec)
}

func (x *faultyIndex) Check(ctx context.Context, alias string) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Check(ctx, alias)
}

func (x *faultyIndex) Ping(ctx context.Context) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Ping(ctx)
}

func (x *faultyIndex) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	if x.down.Load() {
		return core.StoredDocument{}, false, gone()
	}
	return x.Index.Get(ctx, alias, id)
}
