package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
)

// request is one Write waiting for its transaction.
type request struct {
	alias   *alias
	changes []change
	results []core.Result
	bytes   int
	done    chan error
}

const (
	// groupBytes and groupChanges bound the Writes that share one transaction.
	groupBytes   = 32 << 20
	groupChanges = 10_000
)

// Write applies b in one durable transaction, which it shares with concurrent Writes.
func (x *Index) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if err := x.beginCall(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	if err := ctx.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", err)
	}
	a, err := x.alias(b.Index)
	if err != nil {
		return blockedResults(len(b.Items), err), nil
	}
	before := a.tree.Load()
	req := x.prepare(a, b)
	if len(req.changes) == 0 {
		return req.results, nil
	}
	select {
	case x.queue <- req:
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", ctx.Err())
	}
	// From here on ctx is ignored: the transaction decides the outcome, and soon ends.
	if err := <-req.done; err != nil {
		return nil, err
	}
	if a.tree.Load() != before {
		x.cfg.Grown(a.name)
	}
	return req.results, nil
}

// blockedResults returns the results of a batch for an alias that does not exist.
func blockedResults(n int, err error) []core.Result {
	results := make([]core.Result, n)
	for i := range results {
		results[i] = core.Result{
			Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked,
			Type: "index_not_found_exception", Reason: core.MessageOf(err),
		}
	}
	return results
}

// commitLoop applies queued requests, grouping all that arrived during the last transaction.
func (x *Index) commitLoop() {
	var group []*request
	for {
		queue := x.queue
		if x.mergeBacklogged() {
			queue = nil
		}
		select {
		case req := <-queue:
			group = x.gather(append(group[:0], req))
			err := x.apply(group)
			for _, req := range group {
				req.done <- err
			}
			clear(group)
		case s := <-x.swaps:
			x.swap(s)
		case <-x.stop:
			// Close has waited for all calls.
			return
		}
		x.startMerges()
	}
}

func (x *Index) gather(group []*request) []*request {
	size, changes := group[0].bytes, len(group[0].changes)
	for size < groupBytes && changes < groupChanges {
		select {
		case req := <-x.queue:
			group = append(group, req)
			size += req.bytes
			changes += len(req.changes)
		default:
			return group
		}
	}
	return group
}

// apply runs one transaction with the changes of group, alias by alias. It builds the new segments at the same time, and publishes
// them before the Writes return.
func (x *Index) apply(group []*request) error {
	now := uint64(x.cfg.Now().UnixMilli())
	byAlias, size := map[*alias][]*change{}, 0
	for _, req := range group {
		size += req.bytes
		for i := range req.changes {
			byAlias[req.alias] = append(byAlias[req.alias], &req.changes[i])
		}
	}
	proposals := map[*alias]segmentUpdate{}
	err := x.update(size, func(tx *bbolt.Tx) error {
		for a, changes := range byAlias {
			w := newWriter(a, aliasBucket(tx, a.name), now, x.newSegmentWriter(a))
			defer w.newSegment.stop()
			if err := w.apply(changes); err != nil {
				return err
			}
			if w.row == a.segments.row {
				continue
			}
			p, err := w.prepareSegments()
			proposals[a] = p
			if err != nil {
				return err
			}
		}
		return nil
	}, slices.Collect(maps.Keys(byAlias))...)
	for a, p := range proposals {
		a.segments.finish(p, err == nil || x.committed(a, p.row))
	}
	return err
}

// committed reports whether a failed transaction is in the file nevertheless, as when only its last sync failed.
func (x *Index) committed(a *alias, row uint64) bool {
	stands := false
	err := x.db.View(func(tx *bbolt.Tx) error {
		stands = aliasBucket(tx, a.name).Bucket(bucketRows()).Sequence() == row
		return nil
	})
	return err == nil && stands
}

// writer applies changes to one alias within a transaction.
type writer struct {
	alias                                 *alias
	root, ids, rows, scopes, terms, tombs *bbolt.Bucket
	row, now                              uint64
	live                                  int64
	old, new                              entry
	buf                                   []byte
	// newSegment collects the documents that are stored, removed the rows of those that are replaced or removed.
	newSegment *segmentWriter
	removed    []uint64
}

func newWriter(a *alias, b *bbolt.Bucket, now uint64, fresh *segmentWriter) *writer {
	w := &writer{
		alias: a, root: b, now: now, newSegment: fresh, live: int64(liveOf(b)), ids: b.Bucket(bucketIDs()), rows: b.Bucket(bucketRows()),
		scopes: b.Bucket(bucketScopes()), terms: b.Bucket(bucketTerms()), tombs: b.Bucket(bucketTombstones()),
	}
	// Append-only buckets fill their pages.
	w.rows.FillPercent, w.scopes.FillPercent, w.tombs.FillPercent = 1, 0.9, 1
	w.row = w.rows.Sequence()
	return w
}

// liveOf returns the number of documents of an alias.
func liveOf(b *bbolt.Bucket) int {
	if raw := b.Get(keyLive()); len(raw) == 8 {
		return int(binary.BigEndian.Uint64(raw))
	}
	return 0
}

// prepareSegments returns the update of the alias' segments by the transaction, and saves in the file what a restart needs.
func (w *writer) prepareSegments() (segmentUpdate, error) {
	p, logged := w.alias.segments.prepare(w.row, w.newSegment.segment(), w.removed)
	return p, logDeletes(w.root, w.row, logged)
}

// apply applies the changes sorted by id, so that adjacent ids share pages, keeping the order of changes of one id.
func (w *writer) apply(changes []*change) error {
	slices.SortStableFunc(changes, func(a, b *change) int { return cmp.Compare(a.id, b.id) })
	for from := 0; from < len(changes); {
		to := from + 1
		for to < len(changes) && changes[to].id == changes[from].id {
			to++
		}
		if err := w.applyDocument(changes[from:to]); err != nil {
			return err
		}
		from = to
	}
	if err := w.rows.SetSequence(w.row); err != nil {
		return err
	}
	if err := w.root.Put(keyLive(), binary.BigEndian.AppendUint64(nil, uint64(w.live))); err != nil {
		return err
	}
	return w.alias.saveTree(w.root)
}

// applyDocument applies the changes of one id: each gets its outcome, and the last applicable one is stored.
func (w *writer) applyDocument(changes []*change) error {
	id := []byte(changes[0].id)
	raw := w.ids.Get(id)
	known := raw != nil
	if known && !readEntry(raw, &w.old) {
		return errCorrupt("entry")
	}
	var last *change
	version := w.old.version
	for _, c := range changes {
		if (known || last != nil) && (c.version < version || c.strict && c.version == version) {
			*c.result = core.Result{
				Outcome: core.OutcomeStale, Type: "version_conflict_engine_exception", CurrentVersion: version,
			}
			continue
		}
		c.result.Outcome = core.OutcomeIndexed
		if c.deleted {
			c.result.Outcome = core.OutcomeRemoved
		}
		last, version = c, c.version
	}
	if last == nil {
		return nil
	}
	if known {
		if err := w.removeOld(); err != nil {
			return err
		}
	}
	return w.store(id, last)
}

// removeOld removes what the stored entry w.old refers to.
func (w *writer) removeOld() error {
	if w.old.deleted {
		return w.tombs.Delete(tombstoneKey(w.old.since, w.old.row))
	}
	w.live--
	w.removed = append(w.removed, w.old.row)
	for _, t := range w.old.terms {
		if !t.scoped() {
			continue
		}
		if err := w.scopes.Delete(scopeKeyOf(t, w.old.row)); err != nil {
			return err
		}
	}
	return w.rows.Delete(rowKeyOf(w.old.row))
}

func (w *writer) store(id []byte, c *change) error {
	w.row++
	e := &w.new
	*e = entry{deleted: c.deleted, version: c.version, row: w.row, since: w.now, terms: e.terms[:0]}
	if c.deleted {
		if err := w.tombs.Put(tombstoneKey(e.since, e.row), id); err != nil {
			return err
		}
		return w.ids.Put(id, w.encode(e))
	}
	w.live++
	for _, key := range c.terms {
		t, err := w.number(key)
		if err != nil {
			return err
		}
		e.terms = append(e.terms, t)
	}
	w.newSegment.add(rowDocument{number: e.row, id: c.id, document: c.document})
	if err := w.rows.Put(rowKeyOf(e.row), c.row); err != nil {
		return err
	}
	for _, t := range e.terms {
		if !t.scoped() {
			continue
		}
		if err := w.scopes.Put(scopeKeyOf(t, e.row), scopeValue(e.version, e.terms, c.id)); err != nil {
			return err
		}
	}
	return w.ids.Put(id, w.encode(e))
}

// encode returns the encoded e, in memory that is not changed until the transaction ends, as bbolt requires. Entries share memory
// blocks.
func (w *writer) encode(e *entry) []byte {
	const piece = 64 << 10
	most := entryFixed + 9 + 5*len(e.terms)
	if cap(w.buf)-len(w.buf) < most {
		w.buf = make([]byte, 0, max(piece, most))
	}
	start := len(w.buf)
	w.buf = appendEntry(w.buf, e)
	return w.buf[start:len(w.buf):len(w.buf)]
}

// number returns the term's number, assigning one to a new term.
func (w *writer) number(key string) (term, error) {
	if t, ok := w.alias.terms[key]; ok {
		return t, nil
	}
	n, err := w.terms.NextSequence()
	if err != nil {
		return 0, err
	}
	t := term(n << 1)
	if termScoped(key) {
		t |= 1
	}
	if err := w.terms.Put([]byte(key), binary.BigEndian.AppendUint32(nil, uint32(t))); err != nil {
		return 0, err
	}
	w.alias.terms[key] = t
	return t, nil
}
