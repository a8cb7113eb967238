package embedded

import (
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
	// queueLength is the number of Writes that may wait for the transaction in progress before further ones block.
	queueLength = 64
)

// committer runs the transactions that write documents, and applies the results of merges. Only its goroutine changes segment
// sets.
type committer struct {
	*store
	merger  *merger
	queue   chan *request
	changes chan *aliasChange
}

// run applies queued requests, grouping all that arrived during the last transaction.
func (x *committer) run() {
	var group []*request
	for {
		queue := x.queue
		if x.merger.backlogged() {
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
			change.done <- x.changeAliases(change)
		case s := <-x.merger.swaps:
			x.merger.swap(s)
		case <-x.stop:
			// Close has waited for all calls.
			return
		}
		x.merger.start()
	}
}

// rejectDropped ends the requests for indices that were deleted since, and returns the others.
func (x *committer) rejectDropped(group []*request) []*request {
	return slices.DeleteFunc(group, func(req *request) bool {
		if req.alias.dropped {
			req.done <- errMissing(req.alias.name)
		}
		return req.alias.dropped
	})
}

func (x *committer) gather(group []*request) []*request {
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
func (x *committer) apply(group []*request) error {
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
			w := newTransaction(a, aliasBucket(tx, a.name), now, &segmentWriter{alias: a, logger: x.cfg.Logger})
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
func (x *committer) committed(a *alias, row uint64) bool {
	stands := false
	err := x.db.View(func(tx *bbolt.Tx) error {
		stands = aliasBucket(tx, a.name).Bucket(bucketRows()).Sequence() == row
		return nil
	})
	return err == nil && stands
}
