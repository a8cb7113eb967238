package bulk

import "slices"

// indexState is the Writer's state of one index. It exists while the index has batches.
type indexState struct {
	index string
	// filling is the batch that accepts Writes, nil for none.
	filling *batch
	// launched is closed when filling is being sent; nil while nothing waits for that.
	launched chan struct{}
	// waiters are the senders in backoff that want a slot again, oldest first.
	waiters []chan struct{}
	// concurrency limits slots. It outlives the indexState.
	concurrency *concurrency
	// slots is the number of slots in use, active the number of batches being sent, backingOff the number of batches in backoff,
	// and backoffBytes the size of these.
	slots, active, backingOff, backoffBytes int
	// granted is the sequence number of the last use of a slot: of several indexes with equally many slots, the lowest is next.
	granted uint64
}

// indexState returns the state of index. The Writer is locked.
func (w *Writer) indexState(index string) *indexState {
	l := w.indexes[index]
	if l == nil {
		limiter := w.concurrency[index]
		if limiter == nil {
			limiter = newConcurrency(w.cfg.MaxInFlight)
			w.concurrency[index] = limiter
		}
		l = &indexState{index: index, concurrency: limiter}
		w.indexes[index] = l
	}
	return l
}

// removeIfIdle removes an indexState without batches. The Writer is locked.
func (w *Writer) removeIfIdle(l *indexState) {
	if l.filling != nil || l.active > 0 || l.backingOff > 0 {
		return
	}
	delete(w.indexes, l.index)
	w.checkDrained()
}

// markAwaited marks the batches that a sealed ticket waits for.
func (w *Writer) markAwaited(batches []*batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range batches {
		if !b.isFilling() {
			continue
		}
		b.awaited = true
		if b.state.active == 0 {
			b.due = true
			continue
		}
		if at := w.now() + int64(w.cfg.MaxAge); at < b.flush {
			b.flush = at
			w.setAlarm(at)
		}
	}
	w.schedule()
}

// schedule uses the free slots. The Writer is locked.
func (w *Writer) schedule() {
	for l := w.next(); l != nil; l = w.next() {
		w.grants++
		l.granted = w.grants
		w.slots++
		l.slots++
		if len(l.waiters) > 0 {
			close(l.waiters[0])
			l.waiters = slices.Delete(l.waiters, 0, 1)
			continue
		}
		w.launch(l)
	}
}

// next returns the index that gets the next slot, nil for none: the one that uses the fewest, so that no index starves. The Writer is
// locked.
func (w *Writer) next() *indexState {
	var first *indexState
	for _, l := range w.indexes {
		if w.ready(l) && (first == nil || l.slots < first.slots || l.slots == first.slots && l.granted < first.granted) {
			first = l
		}
	}
	return first
}

// ready reports whether l may send something now. When others use all slots, an index without any still gets one; when batches that
// could not enter backoff count as active, an index without any may still start one. An overloaded index starts no more batches
// than its concurrency allows, including those in backoff.
func (w *Writer) ready(l *indexState) bool {
	if len(l.waiters) > 0 {
		return l.slots < l.concurrency.limit && (w.slots < w.cfg.MaxInFlight || l.slots == 0)
	}
	return l.filling != nil && l.filling.due && l.active < l.concurrency.limit && (w.active < w.cfg.MaxInFlight || l.active == 0)
}

// launch starts to send l's batch, in a slot that l was given. The Writer is locked.
func (w *Writer) launch(l *indexState) {
	b := l.filling
	l.filling = nil
	if l.launched != nil {
		close(l.launched)
		l.launched = nil
	}
	l.active++
	w.active++
	s := &sender{w: w, b: b, slot: true}
	w.owned.Go(s.run)
}

// sendEnded records that a batch of l was sent or is in backoff: a batch that a ticket waits for becomes due. The Writer is locked.
func (w *Writer) sendEnded(l *indexState) {
	l.active--
	w.active--
	if l.filling != nil && l.filling.awaited {
		l.filling.due = true
	}
}
