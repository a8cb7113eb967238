package deadletter

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// maxSettled is how many results a process remembers at least, and half of how many it remembers at most, of those with which it has
	// settled records last: about 1.6 MB, and 4 MB more once dead letters arrive.
	maxSettled = 50_000
	// maxAhead is how far a version may lie ahead of this process's clock: one further ahead is of a server whose clock was set back
	// since, and proves nothing.
	maxAhead = time.Minute
)

// newer reports whether the result of a record with version a is newer than the one with version b.
func newer(a, b core.Version) bool {
	return a > b && a <= core.Version(time.Now().Add(maxAhead).UnixNano())
}

// ordered reports whether a dead letter is ordered with other results of its record by its version. A conflict is not: the document
// decides about it.
func ordered(l core.DeadLetter) bool { return l.Version > 0 && l.Reason != core.ReasonConflict }

// settled remembers the versions with which this process has settled records last. Another process may store the dead letter of an older
// result afterwards, or its dead letter may arrive here afterwards: such a dead letter is removed. It is safe for concurrent use.
type settled struct {
	seed          maphash.Seed
	mu            sync.Mutex
	current, last results
}

func (s *settled) set(subject []byte, version core.Version) {
	hash := maphash.Bytes(s.seed, subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.current.all) >= maxSettled {
		clear(s.last.versions)
		s.last, s.current = s.current, results{all: s.last.all[:0], versions: s.last.versions}
	}
	s.current.all = append(s.current.all, result{hash, version})
}

// after reports whether a record was settled with a newer version.
func (s *settled) after(subject []byte, version core.Version) bool {
	hash := maphash.Bytes(s.seed, subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	return newer(max(s.current.version(hash), s.last.version(hash)), version)
}

// results are the results of records, in the order in which they were settled. Most are never looked up: versions has only the first ones,
// those that were there at the last lookup.
type results struct {
	all      []result
	versions map[uint64]core.Version
	indexed  int
}

// result is a version of the record with a hash, which no other process computes alike.
type result struct {
	hash    uint64
	version core.Version
}

// version returns the newest version of a record, 0 for none.
func (r *results) version(hash uint64) core.Version {
	if r.versions == nil && len(r.all) > 0 {
		r.versions = map[uint64]core.Version{}
	}
	for ; r.indexed < len(r.all); r.indexed++ {
		next := r.all[r.indexed]
		r.versions[next.hash] = max(next.version, r.versions[next.hash])
	}
	return r.versions[hash]
}

// removeObsolete removes the dead letters that were stored after a newer result had settled their records. Those that an error leaves are
// removed by the next call.
func (d *Store) removeObsolete(ctx context.Context) error {
	for len(d.obsolete) > 0 {
		subject := d.obsolete[0]
		_, err := d.replaceByTombstone(ctx, subject, func(l core.DeadLetter) bool { return ordered(l) && d.settled.after([]byte(subject), l.Version) })
		if err != nil && !natsconn.IsNotFound(err) && !natsconn.IsConflict(err) {
			return err
		}
		d.obsolete = d.obsolete[1:]
	}
	return nil
}
