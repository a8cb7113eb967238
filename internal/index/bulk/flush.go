package bulk

import (
	"math"
	"time"
)

// noAlarm is the alarm time when nothing is due.
const noAlarm = math.MaxInt64

// now returns the time since the Writer was created, in nanoseconds.
func (w *Writer) now() int64 { return int64(w.cfg.Now().Sub(w.start)) }

// setAlarm makes flushLoop check the batches no later than at. The Writer is locked.
func (w *Writer) setAlarm(at int64) {
	if at >= w.alarm {
		return
	}
	w.alarm = at
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// flushLoop sends the batches that are due, until stop is closed.
func (w *Writer) flushLoop() {
	timer := time.NewTimer(poolIdle)
	defer timer.Stop()
	for {
		wait, ok := w.flushDue()
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

// flushDue sends the batches that are due and returns the time until the next check; ok is false when nothing is scheduled.
func (w *Writer) flushDue() (wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	w.alarm = noAlarm
	for _, l := range w.indexes {
		if l.filling == nil || l.filling.due {
			continue
		}
		if l.filling.flush <= now {
			l.filling.due = true
			continue
		}
		w.alarm = min(w.alarm, l.filling.flush)
	}
	w.schedule()
	if end := w.lastUse + int64(poolIdle); len(w.pool) > 0 {
		if end <= now {
			w.pool = nil
		} else {
			w.alarm = min(w.alarm, end)
		}
	}
	return time.Duration(w.alarm - now), w.alarm != noAlarm
}
