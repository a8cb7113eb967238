package deadletter

import (
	"context"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
)

const (
	// maxSettled is how many records a process remembers at least, and half of how many it remembers at most, of those that it has
	// settled last: about 5 MB.
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
	mu            sync.Mutex
	current, last map[subjectHash]core.Version
}

func (s *settled) set(hash subjectHash, version core.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || len(s.current) >= maxSettled {
		s.last, s.current = s.current, make(map[subjectHash]core.Version)
	}
	s.current[hash] = max(version, s.current[hash], s.last[hash])
}

// after reports whether a record was settled with a newer version.
func (s *settled) after(hash subjectHash, version core.Version) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return newer(max(s.current[hash], s.last[hash]), version)
}

// removeObsolete removes the dead letters that were stored after a newer result had settled their records. Those that an error leaves are
// removed by the next call.
func (d *Store) removeObsolete(ctx context.Context) error {
	for len(d.obsolete) > 0 {
		subject := d.obsolete[0]
		hash := hashOf([]byte(subject))
		_, err := d.replaceByTombstone(ctx, subject, func(l core.DeadLetter) bool { return ordered(l) && d.settled.after(hash, l.Version) })
		if err != nil && !natsconn.IsNotFound(err) && !natsconn.IsConflict(err) {
			return err
		}
		d.obsolete = d.obsolete[1:]
	}
	return nil
}
