package indexfile

import (
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
)

// pruneBatch is the number of tombstones that one transaction removes, so that writes wait only briefly.
const pruneBatch = 2000

// pruner removes old tombstones.
type pruner struct{ *File }

// run removes tombstones that are older than cfg.TombstoneAge, at the start and then every cfg.PruneEvery.
func (x *pruner) run() {
	tick := time.NewTicker(x.cfg.PruneEvery)
	defer tick.Stop()
	for {
		x.pruneAll()
		select {
		case <-tick.C:
		case <-x.calls.stop:
			return
		}
	}
}

// pruneAll removes old tombstones of all aliases, transaction by transaction, until none is left or Close is called.
func (x *pruner) pruneAll() {
	for _, a := range x.allAliases() {
		for removed := pruneBatch; removed == pruneBatch; {
			select {
			case <-x.calls.stop:
				return
			default:
			}
			var err error
			if removed, err = x.prune(a); err != nil {
				if x.calls.begin() != nil {
					return
				}
				x.calls.running.Done()
				x.cfg.Logger.Warn("embedded index could not remove old tombstones", "index", a.Name(), "err", err)
				return
			}
		}
	}
}

// prune removes up to pruneBatch tombstones of one index and returns their number. It only reads when none is old.
func (x *pruner) prune(a *Alias) (removed int, err error) {
	limit := uint64(x.cfg.Now().Add(-x.cfg.TombstoneAge).UnixMilli())
	old := func(key []byte) bool { return len(key) == 16 && binary.BigEndian.Uint64(key) < limit }
	due := false
	err = a.view(func(b *bbolt.Bucket) error {
		key, _ := b.Bucket(bucketTombstones()).Cursor().First()
		due = old(key)
		return nil
	})
	if errors.Is(err, core.ErrIndexMissing) { // dropped
		return 0, nil
	}
	if err != nil || !due {
		return 0, err
	}
	err = x.update(0, func(tx *bbolt.Tx) error {
		b := a.bucket(tx)
		if b == nil {
			return nil // dropped
		}
		tombs, ids := b.Bucket(bucketTombstones()), b.Bucket(bucketIDs())
		var keys, prunedIDs [][]byte
		c := tombs.Cursor()
		for key, id := c.First(); old(key) && len(keys) < pruneBatch; key, id = c.Next() {
			keys, prunedIDs = append(keys, key), append(prunedIDs, id)
		}
		removed = len(keys)
		for i, key := range keys {
			if err := pruneOne(tombs, ids, key, prunedIDs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// pruneOne removes a tombstone, and its id's entry unless that has changed since.
func pruneOne(tombs, ids *bbolt.Bucket, key, id []byte) error {
	var e entry
	if raw := ids.Get(id); raw != nil {
		if !readEntry(raw, &e) {
			return errCorrupt("entry")
		}
		if e.deleted && e.row == binary.BigEndian.Uint64(key[8:]) {
			if err := ids.Delete(append([]byte(nil), id...)); err != nil {
				return err
			}
		}
	}
	return tombs.Delete(append([]byte(nil), key...))
}
