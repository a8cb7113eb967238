package bulk

import (
	"math"
	"time"
)

// never is the time of an alarm that is not set.
const never = math.MaxInt64

// now is the time since the Writer was made, in nanoseconds.
func (w *Writer) now() int64 { return int64(w.cfg.Now().Sub(w.start)) }

// wakeBy sees to it that keepAge looks at the batches no later than at. The Writer is locked.
func (w *Writer) wakeBy(at int64) {
	if at >= w.alarm {
		return
	}
	w.alarm = at
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// keepAge sends the batches that have waited long enough, until stop is closed.
func (w *Writer) keepAge() {
	timer := time.NewTimer(poolIdle)
	defer timer.Stop()
	for {
		wait, ok := w.flushAged()
		if ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.stop:
			return
		}
	}
}

// flushAged sends what is old enough and tells when to look again; not ok: when woken.
func (w *Writer) flushAged() (wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.alarm = never
	for _, l := range w.lanes {
		if l.fill == nil || l.fill.due {
			continue
		}
		if l.fill.flush <= now {
			l.fill.due = true
			continue
		}
		w.alarm = min(w.alarm, l.fill.flush)
	}
	w.schedule()
	if end := w.lastUse + int64(poolIdle); len(w.pool) > 0 {
		if end <= now {
			w.pool = nil
		} else {
			w.alarm = min(w.alarm, end)
		}
	}
	return time.Duration(w.alarm - now), w.alarm != never
}
