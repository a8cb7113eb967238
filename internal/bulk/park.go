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

// park gives up the slot, and the place among the flights too if the parked bodies stay within bounds, so that
// documents which the engine keeps putting off do not hold up the others.
func (f *flight) park(to int) {
	w, b := f.w, f.b
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onWire--
	f.slot = false
	if f.depth == 0 {
		if old, ok := b.shrink(to); ok {
			w.recycle(old)
		}
	}
	if size := cap(b.body); w.parkedBytes+size <= w.cfg.MaxInFlight*w.cfg.BatchBytes {
		f.parked, f.size = true, size
		w.parkedBytes += size
		b.lane.parked++
		w.landed(b.lane)
	}
	w.schedule()
}

// resume takes a slot again. False means that the Writer closes.
func (f *flight) resume() bool {
	w := f.w
	w.mu.Lock()
	if w.onWire < w.pace.limit && len(w.waiters) == 0 {
		w.onWire++
		f.unpark()
		w.mu.Unlock()
		return true
	}
	own := &slotWaiter{granted: make(chan struct{})}
	w.waiters = append(w.waiters, own)
	w.mu.Unlock()
	select {
	case <-own.granted:
	case <-w.closing:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiters, own); i >= 0 {
		w.waiters = slices.Delete(w.waiters, i, i+1)
		return false
	}
	f.unpark()
	return true
}

// unpark notes that the flight has its slot and place again. The Writer is locked.
func (f *flight) unpark() {
	f.slot = true
	if f.parked {
		f.parked = false
		w := f.w
		w.parkedBytes -= f.size
		f.b.lane.parked--
		f.b.lane.flights++
		w.flights++
	}
}
