package merged

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"tutti/internal/core"
)

// maxTries bounds how often one document is read again because another writer has changed it.
const maxTries = 32

// Write writes the items of b, in a shared index by reading, merging and writing the documents until no other writer has changed them
// in between.
func (x *Index) Write(ctx context.Context, b core.Batch) ([]core.Result, error) {
	g := x.groups[b.Index]
	if g == nil {
		return x.Index.Write(ctx, b)
	}
	m := &merging{Index: x, group: g, batch: b, results: make([]core.Result, len(b.Items))}
	open, err := m.begin(ctx)
	for len(open) > 0 && err == nil {
		open, err = m.round(ctx, open)
	}
	if err != nil {
		return nil, err
	}
	return m.results, nil
}

// merging is one Write to a shared index.
type merging struct {
	*Index
	group   *group
	batch   core.Batch
	results []core.Result
}

// task is an item that has no result yet.
type task struct {
	core.BatchItem
	n   int // of the item in the batch
	own own // for OpIndex
	// marked is set when the marker was written with the item's version.
	marked bool
	// conflict is the version that the document, or its tombstone, had at the last conflict.
	conflict core.Version
	tries    int
	// state is that of the document that is written.
	state *core.SharedState
}

// begin returns the tasks of the items, after it has written the markers of the removals.
func (m *merging) begin(ctx context.Context) ([]*task, error) {
	var tasks, removals []*task
	for i, item := range m.batch.Items {
		repo, is := m.group.repositories[item.Repository]
		if !is {
			return nil, core.NewError(core.CodeInternal, "writing to a shared index for an unknown repository")
		}
		t := &task{BatchItem: item, n: i}
		if item.Op == core.OpDelete {
			removals = append(removals, t)
		} else {
			source := m.batch.Document(i)
			if !isObject(source) {
				m.results[i] = core.Result{Outcome: core.OutcomeRejected, Type: core.TypeParsing, Reason: "the document is not a JSON object"}
				continue
			}
			t.own = m.group.newOwn(repo, item, source)
		}
		tasks = append(tasks, t)
	}
	return m.mark(ctx, tasks, removals)
}

func isObject(source []byte) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(source, &members) == nil && members != nil
}

// markerID returns the id of the marker of a repository's record in a document.
func markerID(code, id string) string {
	sum := sha256.Sum256([]byte(code + "\x00" + id))
	return "shared-" + hex.EncodeToString(sum[:])
}

// mark writes the markers of some of the tasks, and returns the tasks without those that have ended.
func (m *merging) mark(ctx context.Context, tasks, marked []*task) ([]*task, error) {
	writes := make([]core.Write, len(marked))
	for i, t := range marked {
		// A strict write must be later than what is stored, but not than its own marker.
		writes[i] = core.Write{Op: core.OpDelete, ID: markerID(t.Repository, t.ID), Version: t.Version, Strict: t.Strict && !t.marked}
	}
	results, err := m.send(ctx, writes)
	if err != nil {
		return nil, err
	}
	ended := map[*task]bool{}
	for i, t := range marked {
		t.marked = true
		if results[i].Outcome != core.OutcomeRemoved {
			m.results[t.n], ended[t] = results[i], true
		}
	}
	return slices.DeleteFunc(tasks, func(t *task) bool { return ended[t] }), nil
}

// send writes to the engine.
func (m *merging) send(ctx context.Context, writes []core.Write) ([]core.Result, error) {
	if len(writes) == 0 {
		return nil, nil
	}
	b := core.Batch{Index: m.batch.Index, Deadline: m.batch.Deadline}
	for _, w := range writes {
		item := core.BatchItem{Op: w.Op, ID: w.ID, Version: w.Version, Strict: w.Strict, Start: len(b.Body)}
		b.Body, item.DocStart, item.DocEnd = m.Encode(b.Body, w)
		item.End = len(b.Body)
		b.Items = append(b.Items, item)
	}
	results, err := m.Index.Index.Write(ctx, b)
	if err == nil && len(results) != len(writes) {
		err = core.NewError(core.CodeUnavailable, "the response of the index is incomplete")
	}
	return results, err
}

// round reads, merges and writes the first open task of each document. It returns the tasks that remain.
func (m *merging) round(ctx context.Context, open []*task) ([]*task, error) {
	var now, rest []*task
	taken := map[string]bool{}
	for _, t := range open {
		if taken[t.ID] {
			rest = append(rest, t)
			continue
		}
		taken[t.ID] = true
		now = append(now, t)
	}
	stored, later, err := m.read(ctx, now)
	if err != nil {
		return nil, err
	}
	now, rest = now[:len(now)-len(later)], append(later, rest...)
	now = slices.DeleteFunc(now, func(t *task) bool { return m.stale(t, stored[t.n].document) })
	adding := slices.DeleteFunc(slices.Clone(now), func(t *task) bool {
		d := stored[t.n]
		_, has := d.find(t.Repository)
		return t.Op == core.OpDelete || has || !d.removals
	})
	if now, err = m.mark(ctx, now, adding); err != nil {
		return nil, err
	}
	again, err := m.write(ctx, now, stored)
	return append(again, rest...), err
}

// storedDocument is a document as it was read. An absent one has no entries; its version is that of its tombstone, 0 if none is known.
type storedDocument struct {
	document
	version core.Version
}

// maxStored is the size of stored documents in bytes from which further ones are read in another round.
const maxStored = 16 << 20

// read returns the stored documents of tasks, by the number of their item, without those of the last tasks, later, if they are large.
func (m *merging) read(ctx context.Context, tasks []*task) (stored map[int]storedDocument, later []*task, err error) {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	stored = make(map[int]storedDocument, len(tasks))
	for _, t := range tasks {
		stored[t.n] = storedDocument{document{removals: t.conflict > 0}, t.conflict}
	}
	bytes := 0
	err = m.GetAll(ctx, m.batch.Index, ids, func(i int, doc core.StoredDocument, found bool) {
		switch {
		case bytes >= maxStored:
			later = append(later, tasks[i])
		case found:
			bytes += len(doc.Source)
			doc.Source = slices.Clone(doc.Source)
			stored[tasks[i].n] = storedDocument{m.group.parse(doc), doc.Version}
		}
	})
	return stored, later, err
}

// stale reports whether the repository's entry is newer than a task, and sets the task's result.
func (m *merging) stale(t *task, d document) bool {
	at, has := d.find(t.Repository)
	if !has || d.entries[at].Version < t.Version || d.entries[at].Version == t.Version && !t.Strict {
		return false
	}
	m.results[t.n] = core.Result{Outcome: core.OutcomeStale, CurrentVersion: d.entries[at].Version, Shared: m.group.state(&d)}
	return true
}

// write merges tasks into the stored documents and writes these. It returns the tasks whose document another writer has changed.
func (m *merging) write(ctx context.Context, tasks []*task, stored map[int]storedDocument) (again []*task, err error) {
	writes := make([]core.Write, len(tasks))
	for i, t := range tasks {
		old := stored[t.n]
		var next document
		if t.Op == core.OpDelete {
			next, t.state = m.group.remove(old.document, t.Repository)
		} else {
			next, t.state = m.group.put(old.document, t.own)
		}
		writes[i] = core.Write{Op: core.OpDelete, ID: t.ID, Version: old.version + 1, Strict: true}
		if len(next.entries) > 0 {
			writes[i].Op = core.OpIndex
			if writes[i].Document, err = next.encode(); err != nil {
				return nil, err
			}
		}
	}
	results, err := m.send(ctx, writes)
	if err != nil {
		return nil, err
	}
	for i, t := range tasks {
		switch r := results[i]; r.Outcome {
		case core.OutcomeStale:
			if t.tries++; t.tries < maxTries {
				t.conflict = r.CurrentVersion
				again = append(again, t)
				continue
			}
			m.results[t.n] = core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded}
		case core.OutcomeIndexed, core.OutcomeRemoved:
			m.results[t.n] = core.Result{Outcome: core.OutcomeIndexed, Shared: t.state}
			if t.Op == core.OpDelete {
				m.results[t.n].Outcome = core.OutcomeRemoved
			}
		default:
			m.results[t.n] = r
		}
	}
	return again, nil
}
