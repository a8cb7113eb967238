package bulk

import (
	"math"
	"time"

	"tutti/internal/base/span"
	"tutti/internal/core"
)

const (
	// firstBytes is the initial capacity of a body. It is small, to limit the memory of many indexes with few writes.
	firstBytes = 64 << 10
	// encodingBytes is the approximate size that an engine's encoding adds to a document and its id.
	encodingBytes = 160
	// poolIdle is how long an idle Writer keeps its buffers.
	poolIdle = 30 * time.Second
)

// buffers are the reusable buffers of a batch.
type buffers struct {
	body  []byte
	items []core.BatchItem
	meta  []itemState
}

// itemState is the Writer's state of an item.
type itemState struct {
	ticket *Ticket
	slot   int
	// deadline is when the item's body becomes too old, by Writer.now.
	deadline int64
	// lastResult is the last result with an overloaded engine, nil for none.
	lastResult *core.Result
}

// batch is a group of Writes to one index. While it is filling it is guarded by the Writer's lock; afterwards its sender owns it.
type batch struct {
	buffers
	state *indexState
	// release, unless nil, releases the memory of a document larger than Config.BatchBytes.
	release func()
	// spans are those of the callers of Add.
	spans span.Group
	// flush is when the batch is due at the latest, by Writer.now.
	flush int64
	// earliest is a lower bound of the items' deadlines.
	earliest int64
	// awaited is set if a sealed ticket waits for the batch, due if it is to be sent as soon as possible, full if it accepts no
	// more Writes.
	awaited, due, full bool
}

// isFilling reports whether b still accepts Writes or waits for its sender. The Writer is locked.
func (b *batch) isFilling() bool { return b.state.filling == b }

// estimateSize returns the approximate size of wr in a body.
func estimateSize(wr core.Write) int { return len(wr.Document) + len(wr.ID) + encodingBytes }

// grow grows the body for n more bytes, up to limit, unless n alone needs more.
func (s *buffers) grow(n, limit int) {
	size := len(s.body) + n
	if size <= cap(s.body) {
		return
	}
	body := make([]byte, len(s.body), max(size, min(2*cap(s.body), limit)))
	copy(body, s.body)
	s.body = body
}

// add appends the encoding of wr.
func (b *batch) add(e Engine, wr core.Write, m itemState, limit int) {
	b.grow(estimateSize(wr), limit)
	start := len(b.body)
	body, docStart, docEnd := e.Encode(b.body, wr)
	b.body = body
	b.items = append(b.items, core.BatchItem{
		Op: wr.Op, ID: wr.ID, Version: wr.Version, Strict: wr.Strict, Repository: wr.Repository, Plain: wr.Plain,
		Start: start, DocStart: docStart, DocEnd: docEnd, End: len(body),
	})
	b.meta = append(b.meta, m)
	b.earliest = min(b.earliest, m.deadline)
}

// view returns the items [from, to) as a core.Batch.
func (b *batch) view(from, to int, start time.Time) core.Batch {
	first := int64(math.MaxInt64)
	for _, m := range b.meta[from:to] {
		first = min(first, m.deadline)
	}
	return core.Batch{
		Index: b.state.index, Body: b.body, Items: b.items[from:to], Deadline: start.Add(time.Duration(first)),
	}
}

// move moves the i-th item to index to and its bytes to end; both must be before their current positions.
func (b *batch) move(i, to, end int) {
	it := b.items[i]
	copy(b.body[end:], b.body[it.Start:it.End])
	shift := it.Start - end
	it.Start -= shift
	it.DocStart -= shift
	it.DocEnd -= shift
	it.End -= shift
	b.items[to] = it
	b.meta[to] = b.meta[i]
}

// latest returns the last deadline of the items [from, to).
func (b *batch) latest(from, to int) int64 {
	last := int64(math.MinInt64)
	for _, m := range b.meta[from:to] {
		last = max(last, m.deadline)
	}
	return last
}

// shrink moves the first n items, which are at the start of the body, to smaller buffers when most of the current ones would be
// unused, and returns the old buffers.
func (b *batch) shrink(n int) (old buffers, ok bool) {
	size := b.items[n-1].End
	if 2*size > cap(b.body) {
		return buffers{}, false
	}
	old = b.buffers
	b.buffers = buffers{
		body:  append(make([]byte, 0, size), old.body[:size]...),
		items: append(make([]core.BatchItem, 0, n), old.items[:n]...),
		meta:  append(make([]itemState, 0, n), old.meta[:n]...),
	}
	return old, true
}

// startBatch starts a batch of l with pooled or new buffers. The Writer is locked.
func (w *Writer) startBatch(l *indexState) *batch {
	b := &batch{state: l, earliest: math.MaxInt64, flush: w.now() + int64(w.cfg.MaxFill)}
	if n := len(w.pool); n > 0 {
		b.buffers = w.pool[n-1]
		w.pool[n-1] = buffers{}
		w.pool = w.pool[:n-1]
	} else {
		b.body = make([]byte, 0, min(firstBytes, w.cfg.BatchBytes))
	}
	w.setAlarm(b.flush)
	return b
}

// putBuffers returns s to the pool, unless a huge document has enlarged it or the pool is full. The Writer is locked.
func (w *Writer) putBuffers(s buffers) {
	w.lastUse = w.now()
	if cap(s.body) < min(firstBytes, w.cfg.BatchBytes) || cap(s.body) > 2*w.cfg.BatchBytes || len(w.pool) > w.cfg.MaxInFlight {
		return
	}
	clear(s.items)
	clear(s.meta)
	w.pool = append(w.pool, buffers{body: s.body[:0], items: s.items[:0], meta: s.meta[:0]})
	w.setAlarm(w.lastUse + int64(poolIdle))
}
