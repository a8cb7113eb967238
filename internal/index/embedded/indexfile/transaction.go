package indexfile

import (
	"cmp"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segmentset"
)

// transaction applies changes to one index within a transaction.
type transaction struct {
	alias                                 *Alias
	root, ids, rows, scopes, terms, tombs *bbolt.Bucket
	row, now                              uint64
	live                                  int64
	old, new                              entry
	buf                                   []byte
	// newSegment collects the documents that are stored, removed the rows of those that are replaced or removed.
	newSegment *segmentset.Writer
	removed    []uint64
}

func newTransaction(a *Alias, b *bbolt.Bucket, now uint64) *transaction {
	w := &transaction{
		alias: a, root: b, now: now, newSegment: segmentset.NewWriter(a.Tree, a.logUnsearchable), live: int64(liveOf(b)), ids: b.Bucket(bucketIDs()), rows: b.Bucket(bucketRows()),
		scopes: b.Bucket(bucketScopes()), terms: b.Bucket(bucketTerms()), tombs: b.Bucket(bucketTombstones()),
	}
	// Append-only buckets fill their pages.
	w.rows.FillPercent, w.scopes.FillPercent, w.tombs.FillPercent = 1, 0.9, 1
	w.row = w.rows.Sequence()
	return w
}

// prepareSegments returns the update of the alias' segments by the transaction, and saves in the file what a restart needs.
func (w *transaction) prepareSegments() (segmentset.Update, error) {
	p, logged := w.alias.segments.Prepare(w.row, w.newSegment.Segment(), w.removed)
	return p, logDeletes(w.root, w.row, logged)
}

// apply applies the changes sorted by id, so that adjacent ids share pages, keeping the order of changes of one id.
func (w *transaction) apply(changes []*Change) error {
	slices.SortStableFunc(changes, func(a, b *Change) int { return cmp.Compare(a.ID, b.ID) })
	for from := 0; from < len(changes); {
		to := from + 1
		for to < len(changes) && changes[to].ID == changes[from].ID {
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
func (w *transaction) applyDocument(changes []*Change) error {
	id := []byte(changes[0].ID)
	raw := w.ids.Get(id)
	known := raw != nil
	if known && !readEntry(raw, &w.old) {
		return errCorrupt("entry")
	}
	var last *Change
	version := w.old.version
	for _, c := range changes {
		if (known || last != nil) && (c.Version < version || c.Strict && c.Version == version) {
			*c.Result = core.Result{
				Outcome: core.OutcomeStale, Type: "version_conflict_engine_exception", CurrentVersion: version,
			}
			continue
		}
		c.Result.Outcome = core.OutcomeIndexed
		if c.Deleted {
			c.Result.Outcome = core.OutcomeRemoved
		}
		last, version = c, c.Version
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
func (w *transaction) removeOld() error {
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

func (w *transaction) store(id []byte, c *Change) error {
	w.row++
	e := &w.new
	*e = entry{deleted: c.Deleted, version: c.Version, row: w.row, since: w.now, terms: e.terms[:0]}
	if c.Deleted {
		if err := w.tombs.Put(tombstoneKey(e.since, e.row), id); err != nil {
			return err
		}
		return w.ids.Put(id, w.encode(e))
	}
	w.live++
	for _, key := range c.Terms {
		t, err := w.number(key)
		if err != nil {
			return err
		}
		e.terms = append(e.terms, t)
	}
	w.newSegment.Add(e.row, c.ID, c.Document)
	if err := w.rows.Put(rowKeyOf(e.row), c.Row); err != nil {
		return err
	}
	for _, t := range e.terms {
		if !t.scoped() {
			continue
		}
		if err := w.scopes.Put(scopeKeyOf(t, e.row), scopeValue(e.version, e.terms, c.ID)); err != nil {
			return err
		}
	}
	return w.ids.Put(id, w.encode(e))
}

// encode returns the encoded e, in memory that is not changed until the transaction ends, as bbolt requires. Entries share memory
// blocks.
func (w *transaction) encode(e *entry) []byte {
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
func (w *transaction) number(key string) (term, error) {
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
