package rebuild

import (
	"context"
	"errors"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
)

// guard rejects documents with values of another JSON kind than a rebuild has decided for their path, also where the engine would take them.
type guard struct {
	engine Engine
	mu     sync.Mutex
	// checkers are by alias.
	checkers map[string]checker
}

// checker is what a mapping said when it was read, at a revision of the state of the alias' rebuild. kinds is nil if nothing is decided.
type checker struct {
	kinds    *kinds.Checker
	revision uint64
	read     time.Time
}

// readAgain is how long a mapping is taken for that of an alias whose index may have been replaced without tutti.
const readAgain = time.Minute

func newGuard(engine Engine) *guard { return &guard{engine: engine, checkers: map[string]checker{}} }

// write writes b. s is the state of the rebuild of the alias whose index, or whose next one, b is for, with its revision.
func (g *guard) write(ctx context.Context, b core.Batch, s state, revision uint64) ([]core.Result, error) {
	decided, err := g.of(ctx, b.Index, s, revision)
	if err != nil {
		return nil, err
	}
	if decided == nil {
		return g.engine.Write(ctx, b)
	}
	rejected := make(map[int]core.Result)
	for i := range b.Items {
		document := b.Document(i)
		if document == nil {
			continue
		}
		if err := decided.Check(document); err != nil {
			rejected[i] = core.Result{Outcome: core.OutcomeRejected, Type: core.TypeOtherKind, Reason: err.Error()}
		}
	}
	write := func(b core.Batch) ([]core.Result, error) { return g.writeUnlessMissing(ctx, b) }
	if len(rejected) == 0 {
		return write(b)
	}
	return b.WriteExcept(rejected, write)
}

// writeUnlessMissing writes b, and forgets what the mapping said if the index takes no writes: it may be another one afterwards.
func (g *guard) writeUnlessMissing(ctx context.Context, b core.Batch) ([]core.Result, error) {
	results, err := g.engine.Write(ctx, b)
	if blocked(results, err) {
		g.mu.Lock()
		delete(g.checkers, b.Index)
		g.mu.Unlock()
	}
	return results, err
}

// of returns what is decided for an alias, nil for nothing. While the alias is moved, its mapping is read for each batch.
func (g *guard) of(ctx context.Context, alias string, s state, revision uint64) (*kinds.Checker, error) {
	g.mu.Lock()
	known, is := g.checkers[alias]
	g.mu.Unlock()
	if is && known.revision == revision && s.step != stepMoving && time.Since(known.read) < readAgain {
		return known.kinds, nil
	}
	raw, err := g.engine.Mapping(ctx, alias)
	switch {
	case errors.Is(err, core.ErrIndexMissing): // which the write reports
		return nil, nil
	case core.Retryable(err):
		return nil, err
	}
	known = checker{kinds: kinds.NewChecker(mapping.RecordedKinds(raw)), revision: revision, read: time.Now()} // without a mapping nothing is decided
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checkers[alias] = known
	return known.kinds, nil
}
