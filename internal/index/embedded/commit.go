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

// request is one Write on its way into a transaction.
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

// Write applies b in one durable transaction, which it shares with the Writes that wait at the same time.
func (x *Index) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	if err := x.begin(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	if err := ctx.Err(); err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was given up", err)
	}
	a, err := x.alias(b.Index)
	if err != nil {
		return blocked(len(b.Items), err), nil
	}
	before := a.tree.Load()
	req := x.prepare(a, b)
	if len(req.changes) == 0 {
		return req.results, nil
	}
	select {
	case x.queue <- req:
	case <-ctx.Done():
		return nil, core.WrapError(core.CodeUnavailable, "writing to the index was given up", ctx.Err())
	}
	// From here on the outcome is that of the transaction, whatever becomes of ctx: it ends within moments.
	if err := <-req.done; err != nil {
		return nil, err
	}
	if a.tree.Load() != before {
		x.cfg.Grown(a.name)
	}
	return req.results, nil
}

// blocked returns the results of a batch for an alias that is missing.
func blocked(n int, err error) []core.Result {
	results := make([]core.Result, n)
	for i := range results {
		results[i] = core.Result{
			Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked,
			Type: "index_not_found_exception", Reason: core.MessageOf(err),
		}
	}
	return results
}

// commitLoop applies what is queued, all of it that has come while the last transaction was written at once.
func (x *Index) commitLoop() {
	var group []*request
	for {
		queue := x.queue
		if x.crowded() {
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
			// No call is in progress any more: Close waited for them.
			return
		}
		x.tidy()
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

// apply runs one transaction over the changes of group, alias by alias. What searches read of it is made meanwhile, and shown
// before those who wrote are told.
func (x *Index) apply(group []*request) error {
	now := uint64(x.cfg.Now().UnixMilli())
	byAlias, size := map[*alias][]*change{}, 0
	for _, req := range group {
		size += req.bytes
		for i := range req.changes {
			byAlias[req.alias] = append(byAlias[req.alias], &req.changes[i])
		}
	}
	proposals := map[*alias]proposal{}
	err := x.update(size, func(tx *bbolt.Tx) error {
		for a, changes := range byAlias {
			w := newWriter(a, aliasBucket(tx, a.name), now, x.newBinder(a))
			defer w.fresh.abandon()
			if err := w.apply(changes); err != nil {
				return err
			}
			if w.row == a.shelf.row {
				continue
			}
			p, err := w.propose()
			proposals[a] = p
			if err != nil {
				return err
			}
		}
		return nil
	}, slices.Collect(maps.Keys(byAlias))...)
	for a, p := range proposals {
		a.shelf.settle(p, err == nil || x.stands(a, p.row))
	}
	return err
}

// stands reports whether a transaction that failed is in the file all the same, as it is when nothing but its last sync failed.
func (x *Index) stands(a *alias, row uint64) bool {
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
	// fresh takes the documents that are stored, gone the rows of those that no longer are.
	fresh *binder
	gone  []uint64
}

func newWriter(a *alias, b *bbolt.Bucket, now uint64, fresh *binder) *writer {
	w := &writer{
		alias: a, root: b, now: now, fresh: fresh, live: int64(liveOf(b)), ids: b.Bucket(bucketIDs()), rows: b.Bucket(bucketRows()),
		scopes: b.Bucket(bucketScopes()), terms: b.Bucket(bucketTerms()), tombs: b.Bucket(bucketTombstones()),
	}
	// What is only ever appended to fills its pages.
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

// propose returns what becomes of the alias' segments by the transaction, and notes in the file what a restart has to know.
func (w *writer) propose() (proposal, error) {
	p, logged := w.alias.shelf.propose(w.row, w.fresh.segment(), w.gone)
	return p, logDeaths(w.root, w.row, logged)
}

// apply goes through the changes by id, the changes of one id in their order: neighbours share pages.
func (w *writer) apply(changes []*change) error {
	slices.SortStableFunc(changes, func(a, b *change) int { return cmp.Compare(a.id, b.id) })
	for from := 0; from < len(changes); {
		to := from + 1
		for to < len(changes) && changes[to].id == changes[from].id {
			to++
		}
		if err := w.document(changes[from:to]); err != nil {
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

// document applies the changes of one id: each gets its outcome, the last that won is stored.
func (w *writer) document(changes []*change) error {
	id := []byte(changes[0].id)
	raw := w.ids.Get(id)
	known := raw != nil
	if known && !readEntry(raw, &w.old) {
		return errCut("entry")
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
		if err := w.drop(); err != nil {
			return err
		}
	}
	return w.store(id, last)
}

// drop takes away what the stored entry w.old points to.
func (w *writer) drop() error {
	if w.old.deleted {
		return w.tombs.Delete(tombstoneKey(w.old.since, w.old.row))
	}
	w.live--
	w.gone = append(w.gone, w.old.row)
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
	w.fresh.add(bound{number: e.row, id: c.id, document: c.document})
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

// encode returns e in bytes that stay as they are until the transaction ends, as bbolt asks for; they share one piece of
// memory with others.
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

// number returns the term's number, a new one when the alias has not met it.
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
