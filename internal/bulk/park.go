package bulk

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	firstBackoff = 50 * time.Millisecond
	// maxDoublings bounds the backoff to 3.2 s.
	maxDoublings = 6
)

// pause lets the engine rest before the items [from, to) are sent again, at least for the given time, but not beyond
// the age of the last body. False means that the Writer closes.
func (f *flight) pause(from, to, attempt int, least time.Duration) bool {
	half := firstBackoff / 2 << min(attempt, maxDoublings)
	rest := max(half+rand.N(half), least)
	rest = min(rest, time.Duration(f.b.latest(from, to)-f.w.now()))
	if rest <= 0 {
		return true
	}
	f.park(to)
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return f.resume()
	case <-f.w.closing:
		return false
	}
}

// park releases the slot, and the place among the flights too if the parked bodies stay within bounds, so that
// documents which the engine keeps putting off do not hold up the others. Bodies of one batch's size may be parked of each
// index, whatever is parked of others.
func (f *flight) park(to int) {
	w, b := f.w, f.b
	w.mu.Lock()
	defer w.mu.Unlock()
	f.releaseSlot()
	if f.depth == 0 {
		if old, ok := b.shrink(to); ok {
			w.recycle(old)
		}
	}
	f.size = cap(b.body)
	if b.lane.parkedBytes+f.size <= w.cfg.BatchBytes || w.parkedBytes+f.size <= w.cfg.MaxInFlight*w.cfg.BatchBytes {
		f.countParked(1)
		w.landed(b.lane)
	}
	w.schedule()
}

// resume takes a slot again. False means that the Writer closes.
func (f *flight) resume() bool {
	w, l, granted := f.w, f.b.lane, make(chan struct{})
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
	f.slot = true
	if f.parked {
		f.countParked(-1)
		l.flights++
		w.flights++
	}
	return true
}

// releaseSlot frees the flight's slot. The Writer is locked.
func (f *flight) releaseSlot() {
	f.slot = false
	f.w.onWire--
	f.b.lane.onWire--
}

// countParked adds the flight to those that are parked (n = 1), or removes it (n = -1). The Writer is locked.
func (f *flight) countParked(n int) {
	f.parked = n > 0
	f.b.lane.parked += n
	f.b.lane.parkedBytes += n * f.size
	f.w.parkedBytes += n * f.size
}
