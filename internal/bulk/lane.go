package bulk

import "slices"

// lane is what the Writer knows of one index. It exists while anything of the index fills, flies or is parked.
type lane struct {
	index string
	// fill is the batch that takes Writes, nil when there is none.
	fill *batch
	// room is closed when fill has been launched; nil while nothing waits for that.
	room chan struct{}
	// waiters are the parked flights that send again, oldest first.
	waiters []chan struct{}
	// pace bounds onWire. It outlives the lane.
	pace *concurrency
	// onWire counts the slots in use, flights the batches that fly, parked those that wait to be sent again, and
	// parkedBytes their bodies.
	onWire, flights, parked, parkedBytes int
	// granted numbers the last use of a slot: of several indexes with as many slots, the one with the lowest is next.
	granted uint64
}

// lane returns the lane of index. The Writer is locked.
func (w *Writer) lane(index string) *lane {
	l := w.lanes[index]
	if l == nil {
		pace := w.paces[index]
		if pace == nil {
			pace = newConcurrency(w.cfg.MaxInFlight)
			w.paces[index] = pace
		}
		l = &lane{index: index, pace: pace}
		w.lanes[index] = l
	}
	return l
}

// leave forgets a lane that has nothing left to do. The Writer is locked.
func (w *Writer) leave(l *lane) {
	if l.fill != nil || l.flights > 0 || l.parked > 0 {
		return
	}
	delete(w.lanes, l.index)
	w.checkDrained()
}

// expect marks the batches that a sealed ticket waits for.
func (w *Writer) expect(fills []*batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range fills {
		if !b.filling() {
			continue
		}
		b.expected = true
		if b.lane.flights == 0 {
			b.due = true
			continue
		}
		if at := w.now() + int64(w.cfg.MaxAge); at < b.flush {
			b.flush = at
			w.wakeBy(at)
		}
	}
	w.schedule()
}

// schedule uses the free slots. The Writer is locked.
func (w *Writer) schedule() {
	for l := w.next(); l != nil; l = w.next() {
		w.grants++
		l.granted = w.grants
		w.onWire++
		l.onWire++
		if len(l.waiters) > 0 {
			close(l.waiters[0])
			l.waiters = slices.Delete(l.waiters, 0, 1)
			continue
		}
		w.launch(l)
	}
}

// next returns the index that gets a slot, nil when none may: the one that uses the fewest, so that no index starves
// another. The Writer is locked.
func (w *Writer) next() *lane {
	var first *lane
	for _, l := range w.lanes {
		if w.ready(l) && (first == nil || l.onWire < first.onWire || l.onWire == first.onWire && l.granted < first.granted) {
			first = l
		}
	}
	return first
}

// ready reports whether l has something to send and may. When others use all slots, an index without any still gets one;
// when flights that could not be parked hold all places, an index without any may still start one. An index that is
// overloaded starts no more than its pace allows, those included that wait to be sent again.
func (w *Writer) ready(l *lane) bool {
	if len(l.waiters) > 0 {
		return l.onWire < l.pace.limit && (w.onWire < w.cfg.MaxInFlight || l.onWire == 0)
	}
	return l.fill != nil && l.fill.due && l.flights < l.pace.limit && (w.flights < w.cfg.MaxInFlight || l.flights == 0)
}

// launch starts the flight of l's batch, in a slot that l got. The Writer is locked.
func (w *Writer) launch(l *lane) {
	b := l.fill
	l.fill = nil
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
	l.flights++
	w.flights++
	f := &flight{w: w, b: b, slot: true}
	w.owned.Go(f.run)
}

// landed notes that a flight of l has ended or is parked: what a ticket waits for may go now. The Writer is locked.
func (w *Writer) landed(l *lane) {
	l.flights--
	w.flights--
	if l.fill != nil && l.fill.expected {
		l.fill.due = true
	}
}
