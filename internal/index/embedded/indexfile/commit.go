package indexfile

import (
	"context"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segmentset"
)

// Change is one write whose document is checked and encoded, but whose version is not yet compared.
type Change struct {
	ID      string
	Version core.Version
	Strict  bool
	Deleted bool
	// Row is the encoded row (AppendRow), Document its source.
	Row, Document []byte
	// Terms are the field and value pairs that scopes select by (AppendTerm).
	Terms []string
	// Result receives the outcome.
	Result *core.Result
}

// Request is the changes of one index that are applied in one transaction. Bytes is the total size of their rows.
type Request struct {
	Alias   *Alias
	Changes []Change
	Bytes   int
	done    chan error
}

// Write applies a Request in one durable transaction, which it shares with concurrent ones. ctx ends only the wait for its start: the
// transaction decides the outcome, and soon ends. CodeIndexBlocked when the index was deleted since.
func (f *File) Write(ctx context.Context, req *Request) error {
	req.done = make(chan error, 1)
	select {
	case f.committer.queue <- req:
		return <-req.done
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "writing to the index was cancelled", ctx.Err())
	}
}

const (
	// groupBytes and groupChanges bound the Writes that share one transaction.
	groupBytes   = 32 << 20
	groupChanges = 10_000
	// queueLength is the number of Writes that may wait for the transaction in progress before further ones block.
	queueLength = 64
)

// committer runs the transactions that write documents, and applies the results of merges. Only its goroutine changes segment
// sets.
type committer struct {
	file    *File
	merger  *segmentset.Merger
	queue   chan *Request
	changes chan *AliasChange
	swaps   chan *segmentset.Swap
}

func newCommitter(f *File) *committer {
	x := &committer{file: f, queue: make(chan *Request, queueLength), changes: make(chan *AliasChange), swaps: make(chan *segmentset.Swap)}
	x.merger = segmentset.NewMerger(x, f.folder, f.cfg.Logger)
	return x
}

// run applies queued requests, grouping all that arrived during the last transaction.
func (x *committer) run() {
	var group []*Request
	for {
		queue := x.queue
		if x.merger.Backlogged() {
			queue = nil
		}
		select {
		case req := <-queue:
			group = x.gather(append(group[:0], req))
			if group = x.rejectDropped(group); len(group) == 0 {
				continue
			}
			err := x.apply(group)
			for _, req := range group {
				req.done <- err
			}
			clear(group)
		case change := <-x.changes:
			change.done <- x.file.changeAliases(change)
		case s := <-x.swaps:
			x.merger.Apply(s)
		case <-x.file.calls.stop:
			// Close has waited for all calls.
			return
		}
		x.merger.Start()
	}
}

// rejectDropped ends the requests for indices that were deleted since, and returns the others.
func (x *committer) rejectDropped(group []*Request) []*Request {
	return slices.DeleteFunc(group, func(req *Request) bool {
		if req.Alias.segments.Dropped() {
			req.done <- ErrMissing(req.Alias.Name())
		}
		return req.Alias.segments.Dropped()
	})
}

func (x *committer) gather(group []*Request) []*Request {
	size, changes := group[0].Bytes, len(group[0].Changes)
	for size < groupBytes && changes < groupChanges {
		select {
		case req := <-x.queue:
			group = append(group, req)
			size += req.Bytes
			changes += len(req.Changes)
		default:
			return group
		}
	}
	return group
}

// apply runs one transaction with the changes of group, alias by alias. It builds the new segments at the same time, and publishes
// them before the Writes return.
func (x *committer) apply(group []*Request) error {
	now := uint64(x.file.cfg.Now().UnixMilli())
	byAlias, size := map[*Alias][]*Change{}, 0
	for _, req := range group {
		size += req.Bytes
		for i := range req.Changes {
			byAlias[req.Alias] = append(byAlias[req.Alias], &req.Changes[i])
		}
	}
	proposals := map[*Alias]segmentset.Update{}
	err := x.file.update(size, func(tx *bbolt.Tx) error {
		for a, changes := range byAlias {
			w := newTransaction(a, a.bucket(tx), now)
			defer w.newSegment.Stop()
			if err := w.apply(changes); err != nil {
				return err
			}
			if w.row == a.segments.Row() {
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
		a.segments.Finish(p, err == nil || x.committed(a, p.Row))
	}
	return err
}

// committed reports whether a failed transaction is in the file nevertheless, as when only its last sync failed.
func (x *committer) committed(a *Alias, row uint64) bool {
	stands := false
	err := x.file.db.View(func(tx *bbolt.Tx) error {
		stands = a.bucket(tx).Bucket(bucketRows()).Sequence() == row
		return nil
	})
	return err == nil && stands
}

// Sets returns the segment sets of all indices.
func (x *committer) Sets() []*segmentset.Set {
	x.file.mu.RLock()
	defer x.file.mu.RUnlock()
	sets := make([]*segmentset.Set, 0, len(x.file.aliases))
	for _, a := range x.file.aliases {
		sets = append(sets, a.segments)
	}
	return sets
}

// Save saves the manifest of an index.
func (x *committer) Save(set *segmentset.Set, members []segmentset.Member, removed []uint64) bool {
	err := x.file.update(0, func(tx *bbolt.Tx) error { return checkpoint(indexBucket(tx, set.Name()), members, removed) })
	if err != nil {
		x.file.cfg.Logger.Warn("embedded index could not update its manifest of segment files", "index", set.Name(), "err", err)
	}
	return err == nil
}

// Background runs a merge in a goroutine that Close waits for.
func (x *committer) Background(merge func() *segmentset.Swap) {
	x.file.work.Go(func() { x.send(merge()) })
}

// send passes a Swap to the goroutine. It returns false when the file is closed.
func (x *committer) send(s *segmentset.Swap) bool {
	select {
	case x.swaps <- s:
		return true
	case <-x.file.calls.stop:
		return false
	}
}

// Closing reports whether Close has started.
func (x *committer) Closing() bool {
	select {
	case <-x.file.calls.closing:
		return true
	default:
		return false
	}
}
