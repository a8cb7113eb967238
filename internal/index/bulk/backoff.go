package bulk

import (
	"slices"
	"time"

	"tutti/internal/base/retry"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 3200 * time.Millisecond
)

// backoff waits before the items [from, to) are retried, at least for the given time, but not beyond the age of the last body. It
// returns false when the Writer is being closed.
func (s *sender) backoff(from, to, attempt int, least time.Duration) bool {
	rest := max(retry.Delay(attempt, firstBackoff, maxBackoff), least)
	rest = min(rest, time.Duration(s.b.latest(from, to)-s.w.now()))
	if rest <= 0 {
		return true
	}
	s.releaseSlotForBackoff(to)
	select {
	case <-time.After(rest):
		return s.acquireSlot()
	case <-s.w.closing:
		return false
	}
}

// releaseSlotForBackoff releases the slot, and the batch's place among the active ones if the bodies in backoff stay within bounds,
// so that documents that the engine delays do not block others. Each index may have one batch size of bodies in backoff, regardless
// of others.
func (s *sender) releaseSlotForBackoff(to int) {
	w, b := s.w, s.b
	w.mu.Lock()
	defer w.mu.Unlock()
	s.releaseSlot()
	if s.depth == 0 {
		if old, ok := b.shrink(to); ok {
			w.putBuffers(old)
		}
	}
	s.size = cap(b.body)
	if b.state.backoffBytes+s.size <= w.cfg.BatchBytes || w.backoffBytes+s.size <= w.cfg.MaxInFlight*w.cfg.BatchBytes {
		s.countBackoff(1)
		w.sendEnded(b.state)
	}
	w.schedule()
}

// acquireSlot waits for a slot. It returns false when the Writer is being closed.
func (s *sender) acquireSlot() bool {
	w, l, granted := s.w, s.b.state, make(chan struct{})
	w.mu.Lock()
	l.waiters = append(l.waiters, granted)
	w.schedule()
	w.mu.Unlock()
	select {
	case <-granted:
	case <-w.closing:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(l.waiters, granted); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		return false
	}
	s.slot = true
	if s.backingOff {
		s.countBackoff(-1)
		l.active++
		w.active++
	}
	return true
}

// releaseSlot releases the sender's slot. The Writer is locked.
func (s *sender) releaseSlot() {
	s.slot = false
	s.w.slots--
	s.b.state.slots--
}

// countBackoff adds the sender to those in backoff (n = 1), or removes it (n = -1). The Writer is locked.
func (s *sender) countBackoff(n int) {
	s.backingOff = n > 0
	s.b.state.backingOff += n
	s.b.state.backoffBytes += n * s.size
	s.w.backoffBytes += n * s.size
}
