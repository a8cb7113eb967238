package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tutti/internal/core"
)

// typeMissing is the type of the result of a write to an alias that does not exist.
const typeMissing = "index_not_found_exception"

// Engine encodes and writes documents.
type Engine interface {
	Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int)
	Write(ctx context.Context, b core.Batch) ([]core.Result, error)
	// Mapping returns the mapping of an alias, as index.Index does.
	Mapping(ctx context.Context, alias string) (json.RawMessage, error)
}

// Mirror is an Engine that also writes to the indices that rebuilds fill, and rejects what contradicts the decisions of an earlier one. It is
// safe for concurrent use.
type Mirror struct {
	Engine
	cells core.Cells
	guard *guard
}

// NewMirror returns a Mirror of an engine's writes.
func NewMirror(engine Engine, cells core.Cells) *Mirror {
	return &Mirror{Engine: engine, cells: cells, guard: newGuard(engine)}
}

// Write writes b to the index that is filled to replace its own, if there is one, then to its own. An item has one outcome: that of its
// own index, but a retry or a rejection of either, with Mirrored set and as NextVersion the one that made it stale in the other index.
func (m *Mirror) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	alias, isNext := strings.CutSuffix(b.Index, core.NextSuffix)
	s, revision, err := readState(ctx, m.cells, alias)
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "reading the state of the index's rebuild", err)
	}
	if isNext || s.step != stepFilling && s.step != stepMoving {
		return m.guard.write(ctx, b, s, revision)
	}
	next := b
	next.Index = core.NextAlias(b.Index)
	mirrored, err := m.guard.write(ctx, next, s, revision)
	missing := errors.Is(err, core.ErrIndexMissing) || err == nil && allMissing(mirrored)
	if missing || s.step == stepFilling && blocked(mirrored, err) {
		return m.writeOwn(ctx, b, s, revision, missing)
	}
	if err != nil {
		return nil, err
	}
	results, err := m.guard.write(ctx, b, s, revision)
	if err != nil || len(results) != len(mirrored) {
		return results, err
	}
	for i, r := range mirrored {
		if r.Outcome == core.OutcomeRetry || r.Outcome == core.OutcomeRejected && results[i].Outcome != core.OutcomeRetry {
			results[i] = r
		}
		results[i].Mirrored = true
		if r.Outcome == core.OutcomeStale {
			results[i].NextVersion = r.CurrentVersion
		}
	}
	return results, nil
}

// writeOwn writes b to its own index, because the one that is filled is missing or takes no writes. If its own index takes them, the rebuild
// fails: it must neither lack them nor delay them. If the state has changed since it was read, the alias of a missing index has moved; b
// is to be retried otherwise.
func (m *Mirror) writeOwn(ctx context.Context, b core.Batch, s state, revision uint64, missing bool) ([]core.Result, error) {
	results, err := m.guard.write(ctx, b, s, revision)
	if s.step != stepFilling || err != nil || blocked(results, nil) {
		return results, err
	}
	alias := b.Index
	s.step = stepLost
	setErr := writeState(ctx, m.cells, alias, s, revision)
	switch {
	case setErr == nil, missing && core.CodeOf(setErr) == core.CodeConflict:
		return results, nil
	case core.CodeOf(setErr) == core.CodeConflict:
		return nil, core.WrapError(core.CodeOverloaded, "the state of the index's rebuild has changed", setErr)
	default:
		return nil, core.WrapError(core.CodeUnavailable, "changing the state of the index's rebuild", setErr)
	}
}

// blocked reports whether an index has taken no write, or not all, because it is missing, closed or blocked.
func blocked(results []core.Result, err error) bool {
	return core.CodeOf(err) == core.CodeIndexBlocked || slices.ContainsFunc(results, func(r core.Result) bool {
		return r.Outcome == core.OutcomeRetry && r.Code == core.CodeIndexBlocked
	})
}

// allMissing reports whether no item was written because the alias does not exist.
func allMissing(results []core.Result) bool {
	for _, r := range results {
		if r.Outcome != core.OutcomeRetry || r.Type != typeMissing {
			return false
		}
	}
	return true
}
