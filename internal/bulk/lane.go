package bulk

import "slices"

// lane is what the Writer knows of one index. It exists while anything of the index fills, flies or is parked.
type lane struct {
	index string
	// fill is the batch that takes Writes, nil when there is none.
	fill *batch
	// room is closed when fill has been launched; nil while nobody waits for that.
	room chan struct{}
	// flights counts the batches that fly, parked those that wait to be sent again.
	flights, parked int
}

// slotWaiter is a parked flight that wants to send again.
type slotWaiter struct {
	granted chan struct{}
}

// lane gives the lane of index. The Writer is locked.
func (w *Writer) lane(index string) *lane {
	l := w.lanes[index]
	if l == nil {
		l = &lane{index: index}
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
			w.due(b)
			continue
		}
		if at := w.now() + int64(w.cfg.MaxAge); at < b.flush {
			b.flush = at
			w.wakeBy(at)
		}
	}
	w.schedule()
}

// due puts b in the row of those that go as soon as possible. The Writer is locked.
func (w *Writer) due(b *batch) {
	if !b.due {
		b.due = true
		w.ready = append(w.ready, b)
	}
}

// schedule uses the free slots: first for flights that send again, then for batches that are due. The Writer is locked.
func (w *Writer) schedule() {
	for w.onWire < w.pace.limit && len(w.waiters) > 0 {
		w.onWire++
		close(w.waiters[0].granted)
		w.waiters = slices.Delete(w.waiters, 0, 1)
	}
	for w.onWire < w.pace.limit {
		// When flights that could not be parked hold all places, an index without any may still start one: no index
		// starves another.
		i := slices.IndexFunc(w.ready, func(b *batch) bool { return w.flights < w.cfg.MaxInFlight || b.lane.flights == 0 })
		if i < 0 {
			return
		}
		b := w.ready[i]
		w.ready = slices.Delete(w.ready, i, i+1)
		w.launch(b)
	}
}

// launch starts the flight of b, which takes a slot. The Writer is locked.
func (w *Writer) launch(b *batch) {
	l := b.lane
	l.fill = nil
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
	l.flights++
	w.flights++
	w.onWire++
	f := &flight{w: w, b: b, slot: true}
	w.owned.Go(f.run)
}

// landed notes that a flight of l has ended or is parked: what a ticket waits for may go now. The Writer is locked.
func (w *Writer) landed(l *lane) {
	l.flights--
	w.flights--
	if l.fill != nil && l.fill.expected {
		w.due(l.fill)
	}
}
