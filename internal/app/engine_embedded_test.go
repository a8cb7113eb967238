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

// embeddedEngine is the index in process. A spoilt one is opened by the test and outlives the app.
type embeddedEngine struct{ spoilt *spoiltIndex }

func newEngine(t *testing.T, w *world) engine {
	t.Helper()
	if !w.set.spoilt {
		return &embeddedEngine{}
	}
	x, err := embedded.Open(embedded.Config{Dir: filepath.Join(w.dir, "spoilt")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return &embeddedEngine{spoilt: &spoiltIndex{Index: x, rates: [...]float64{
		w.set.rates.TooManyRequests, w.set.rates.Unavailable, w.set.rates.ResetRequest, w.set.rates.ResetResponse,
		w.set.rates.Cut,
	}}}
}

func (e *embeddedEngine) url() string { return "" }

func (e *embeddedEngine) replace(opts *app.Options) {
	if e.spoilt != nil {
		opts.Index = e.spoilt
	}
}

func (e *embeddedEngine) setDown(down bool) { e.spoilt.down.Store(down) }
func (e *embeddedEngine) spoil(on bool)     { e.spoilt.on.Store(on) }
func (e *embeddedEngine) faults() (whole, items int64) {
	return e.spoilt.whole.Load(), e.spoilt.items.Load()
}

func (e *embeddedEngine) largestBulk() (int64, bool) { return 0, false }

func (e *embeddedEngine) documents(w *world) map[string][]byte {
	w.t.Helper()
	var x index.Index
	if e.spoilt != nil {
		x = e.spoilt.Index
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
		if found { // it may have been removed meanwhile
			documents[id] = append([]byte(nil), stored.Source...)
		}
	}
	return documents
}

// spoiltIndex does to the embedded index what a FaultProxy does to one behind HTTP, and refuses single documents.
type spoiltIndex struct {
	index.Index

	// rates are those of 429, 503, a reset before the request, a reset after it, and an answer cut short.
	rates        [5]float64
	on, down     atomic.Bool
	whole, items atomic.Int64
}

func gone() error { return core.NewError(core.CodeUnavailable, "the index does not answer") }

// Write fails as a whole, answers too little, or writes a part and puts the rest off.
func (x *spoiltIndex) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
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

// The rest of the port only knows whether the engine is there.

func (x *spoiltIndex) Ensure(ctx context.Context, spec index.Spec) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Ensure(ctx, spec)
}

func (x *spoiltIndex) Check(ctx context.Context, alias string) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Check(ctx, alias)
}

func (x *spoiltIndex) Ping(ctx context.Context) error {
	if x.down.Load() {
		return gone()
	}
	return x.Index.Ping(ctx)
}

func (x *spoiltIndex) Get(ctx context.Context, alias, id string) (core.StoredDocument, bool, error) {
	if x.down.Load() {
		return core.StoredDocument{}, false, gone()
	}
	return x.Index.Get(ctx, alias, id)
}
