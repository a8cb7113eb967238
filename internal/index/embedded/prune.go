package embedded

import (
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
)

// pruneMost is how many tombstones one transaction removes, so that writes wait for moments only.
const pruneMost = 2000

// pruneLoop removes tombstones that are older than cfg.TombstoneAge, at the start and then every cfg.PruneEvery.
func (x *Index) pruneLoop() {
	tick := time.NewTicker(x.cfg.PruneEvery)
	defer tick.Stop()
	for {
		x.pruneAll()
		select {
		case <-tick.C:
		case <-x.stop:
			return
		}
	}
}

// pruneAll goes through the aliases, transaction by transaction, until none has an old tombstone or Close is called.
func (x *Index) pruneAll() {
	x.mu.RLock()
	names := make([]string, 0, len(x.aliases))
	for name := range x.aliases {
		names = append(names, name)
	}
	x.mu.RUnlock()
	for _, name := range names {
		for removed := pruneMost; removed == pruneMost; {
			select {
			case <-x.stop:
				return
			default:
			}
			var err error
			if removed, err = x.prune(name); err != nil {
				if x.begin() != nil {
					return
				}
				x.calls.Done()
				x.cfg.Logger.Warn("embedded index could not remove old tombstones", "index", name, "err", err)
				return
			}
		}
	}
}

// prune removes up to pruneMost tombstones of one alias and tells how many. Where none is old it only reads.
func (x *Index) prune(name string) (removed int, err error) {
	limit := uint64(x.cfg.Now().Add(-x.cfg.TombstoneAge).UnixMilli())
	old := func(key []byte) bool { return len(key) == 16 && binary.BigEndian.Uint64(key) < limit }
	due := false
	err = x.view(name, func(_ *alias, b *bbolt.Bucket) error {
		key, _ := b.Bucket(bucketTombstones()).Cursor().First()
		due = old(key)
		return nil
	})
	if err != nil || !due {
		return 0, err
	}
	err = x.update(0, func(tx *bbolt.Tx) error {
		b := aliasBucket(tx, name)
		tombs, ids := b.Bucket(bucketTombstones()), b.Bucket(bucketIDs())
		var keys, gone [][]byte
		c := tombs.Cursor()
		for key, id := c.First(); old(key) && len(keys) < pruneMost; key, id = c.Next() {
			keys, gone = append(keys, key), append(gone, id)
		}
		removed = len(keys)
		for i, key := range keys {
			if err := pruneOne(tombs, ids, key, gone[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// pruneOne removes a tombstone, and its id's entry if that is still the same deletion.
func pruneOne(tombs, ids *bbolt.Bucket, key, id []byte) error {
	var e entry
	if raw := ids.Get(id); raw != nil {
		if !readEntry(raw, &e) {
			return core.NewError(core.CodeInternal, "the index holds an entry that cannot be read")
		}
		if e.deleted && e.row == binary.BigEndian.Uint64(key[8:]) {
			if err := ids.Delete(append([]byte(nil), id...)); err != nil {
				return err
			}
		}
	}
	return tombs.Delete(append([]byte(nil), key...))
}
