package page

import (
	"context"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/gjson"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
)

// Bounds of the rows that are compared with the index in one call, and of how long the first of them waits for the others.
const (
	comparedRows  = 128
	comparedBytes = 512 << 10
	comparedAfter = 500 * time.Millisecond
)

// driftKind is how a record that is to be indexed differs from the index.
type driftKind uint8

const (
	driftMissing driftKind = iota
	driftDifferent
	driftOlder // one that is different, and older
	driftUncompared
)

// of returns the count of the kind.
func (k driftKind) of(d *core.Drift) *int64 {
	return [...]*int64{&d.Missing, &d.Different, &d.Different, &d.Uncompared}[k]
}

// comparison compares the rows of a pass with the index, and has the pass write those that differ.
type comparison struct {
	pass      *pass
	rows      []comparedRow
	documents []byte
	since     time.Time // when the first of rows was added

	unchanged []string             // ids of records whose documents are equal, or that have none and must not have one
	drift     map[string]driftKind // ids of records whose documents are written
}

// comparedRow is a row that is compared with the index before it is written.
type comparedRow struct {
	id string
	// start and end bound its document in comparison.documents; both are 0 for a record that must not have one.
	start, end int
}

// add adds a row, with its document or, for a record that must not have one, nil.
func (c *comparison) add(ctx context.Context, id string, document []byte) error {
	row := comparedRow{id: id}
	if document != nil {
		row.start = len(c.documents)
		c.documents = append(c.documents, document...)
		row.end = len(c.documents)
	}
	if len(c.rows) == 0 {
		c.since = time.Now()
	}
	c.rows = append(c.rows, row)
	if len(c.rows) < comparedRows && len(c.documents) < comparedBytes && time.Since(c.since) < comparedAfter {
		return nil
	}
	return c.writeDifferent(ctx)
}

// writeDifferent compares the added rows with the index, and writes those that differ. When the index cannot be read, it writes all.
func (c *comparison) writeDifferent(ctx context.Context) error {
	if len(c.rows) == 0 {
		return nil
	}
	w := c.pass.w
	ids := make([]string, len(c.rows))
	for i, row := range c.rows {
		ids[i] = row.id
	}
	states := make([]rowState, len(ids))
	err := w.cfg.Index.GetAll(ctx, w.cfg.Repository.IndexName, ids, func(i int, doc core.StoredDocument, found bool) {
		if found {
			states[i] = c.stateOf(c.rows[i], doc)
		}
	})
	if err != nil {
		w.log.Warn("rows of a page could not be compared with the index and are written", "rows", len(ids), "err", err)
	}
	if c.drift == nil {
		c.drift = make(map[string]driftKind)
	}
	for i, row := range c.rows {
		kind := driftDifferent
		absent := row.end == 0
		switch {
		case absent && (err != nil || states[i].found): // the sweep removes the document
			continue
		case err != nil:
			kind = driftUncompared
		case states[i].equal || absent:
			c.unchanged = append(c.unchanged, row.id)
			continue
		case !states[i].found:
			kind = driftMissing
		case states[i].older:
			kind = driftOlder
		}
		c.drift[row.id] = kind
		c.pass.ids = append(c.pass.ids, row.id)
		write := core.Write{Op: core.OpIndex, ID: row.id, Document: c.documents[row.start:row.end]}
		if err := c.pass.add(ctx, core.Record{ID: row.id}, write); err != nil {
			return err
		}
	}
	c.rows, c.documents = c.rows[:0], c.documents[:0]
	if cap(c.documents) > 2*comparedBytes {
		c.documents = nil
	}
	return nil
}

// rowState is how a row compares with its document in the index.
type rowState struct{ found, equal, older bool }

// stateOf compares a row with its document in the index.
func (c *comparison) stateOf(row comparedRow, stored core.StoredDocument) rowState {
	w := c.pass.w
	document := c.documents[row.start:row.end]
	// An earlier attempt of this run, whose counts may be lost or void, has written it because it differed: it is written and counted again.
	written := stored.Version == w.version
	equal := !written && w.cfg.Same(stored.Source, document) && !w.cfg.Outcomes.LacksConflict(w.organization.name, row.id, stored.Source)
	return rowState{found: true, equal: equal, older: !equal && isOlder(w.cfg.Repository.Fields.Updated, document, stored.Source)}
}

// isOlder reports whether the repository changed a record last before the state that a stored document has; path is that of the time of the
// change, "" if there is none.
func isOlder(path string, document, stored []byte) bool {
	if path == "" {
		return false
	}
	at, dated := isodate.Time(gjson.GetBytes(document, path).String())
	was, known := isodate.Time(gjson.GetBytes(stored, path).String())
	return dated && known && at.Before(was)
}

// settleUnchanged settles the unchanged rows.
func (c *comparison) settleUnchanged(ctx context.Context) error {
	w := c.pass.w
	for _, id := range c.unchanged {
		err := w.cfg.Loop.RetryUntilStopped(ctx, "clearing a dead letter", func() error {
			return w.cfg.Outcomes.ClearDeadLetter(ctx, w.organization.name, id, w.message.Version())
		})
		if err != nil {
			return err
		}
		w.ledger.settle(id)
		if c.pass.countOnce(xxhash.Sum64String(id)) {
			w.ledger.totals.Drift.Unchanged++
		}
	}
	return nil
}

// countWritten counts a record that is new to the chain and was written because it differed, unless the index has a newer document, or has
// rejected it: that is counted as such, and each comparison would find it again.
func (c *comparison) countWritten(id string, written core.Outcome) {
	kind, differed := c.drift[id]
	if !differed || written == core.OutcomeStale || written == core.OutcomeRejected {
		return
	}
	if _, fresh := c.pass.fresh[xxhash.Sum64String(id)]; fresh {
		c.pass.w.ledger.countDrift(id, kind)
	}
}
