package bulk

import (
	"math"
	"time"

	"tutti/internal/core"
)

const (
	// firstBytes is the capacity of a new body, so that many indexes with little to write cost little.
	firstBytes = 64 << 10
	// encodingBytes is about what an engine's encoding adds to a document and its id.
	encodingBytes = 160
	// poolIdle is how long an idle Writer keeps its buffers.
	poolIdle = 30 * time.Second
)

// storage is what a batch is made of; it is pooled.
type storage struct {
	body  []byte
	items []core.BatchItem
	meta  []meta
}

// meta is what the Writer knows of an item beside core.BatchItem.
type meta struct {
	ticket *Ticket
	slot   int
	// deadline is when the item's body becomes too old, by Writer.now.
	deadline int64
	// last is what the engine said when it was too busy for the item, nil when it never was.
	last *core.Result
}

// batch is a run of Writes to one index. While it fills, the Writer's lock guards it; afterwards its flight owns it.
type batch struct {
	storage
	lane *lane
	// release, when it is not nil, releases the memory of a document over Config.BatchBytes.
	release func()
	// flush is when the batch is due at the latest, by Writer.now.
	flush int64
	// earliest is no later than the first deadline of the items.
	earliest int64
	// expected: a sealed ticket waits for it. due: to be sent as soon as possible. full: takes no more Writes.
	expected, due, full bool
}

// filling reports whether b still takes Writes or waits for its flight. The Writer is locked.
func (b *batch) filling() bool { return b.lane.fill == b }

// need estimates what wr adds to a body.
func need(wr core.Write) int { return len(wr.Document) + len(wr.ID) + encodingBytes }

// grow makes room for n more bytes. Bodies grow to limit and no further, unless n alone needs more.
func (s *storage) grow(n, limit int) {
	size := len(s.body) + n
	if size <= cap(s.body) {
		return
	}
	body := make([]byte, len(s.body), max(size, min(2*cap(s.body), limit)))
	copy(body, s.body)
	s.body = body
}

// add appends the encoding of wr.
func (b *batch) add(e Engine, wr core.Write, m meta, limit int) {
	b.grow(need(wr), limit)
	start := len(b.body)
	body, docStart, docEnd := e.Encode(b.body, wr)
	b.body = body
	b.items = append(b.items, core.BatchItem{
		Op: wr.Op, ID: wr.ID, Version: wr.Version, Strict: wr.Strict,
		Start: start, DocStart: docStart, DocEnd: docEnd, End: len(body),
	})
	b.meta = append(b.meta, m)
	b.earliest = min(b.earliest, m.deadline)
}

// view returns the items [from, to) as the engine sees them.
func (b *batch) view(from, to int, start time.Time) core.Batch {
	first := int64(math.MaxInt64)
	for _, m := range b.meta[from:to] {
		first = min(first, m.deadline)
	}
	return core.Batch{
		Index: b.lane.index, Body: b.body, Items: b.items[from:to], Deadline: start.Add(time.Duration(first)),
	}
}

// move puts the i-th item at index to and its bytes at end; both stand before where they are now.
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

// shrink moves the first n items, which stand at the start of the body, to storage of their size when most of the old
// one would lie idle, and returns the old one.
func (b *batch) shrink(n int) (old storage, ok bool) {
	size := b.items[n-1].End
	if 2*size > cap(b.body) {
		return storage{}, false
	}
	old = b.storage
	b.storage = storage{
		body:  append(make([]byte, 0, size), old.body[:size]...),
		items: append(make([]core.BatchItem, 0, n), old.items[:n]...),
		meta:  append(make([]meta, 0, n), old.meta[:n]...),
	}
	return old, true
}

// startBatch begins a batch of l in pooled or new storage. The Writer is locked.
func (w *Writer) startBatch(l *lane) *batch {
	b := &batch{lane: l, earliest: math.MaxInt64, flush: w.now() + int64(w.cfg.MaxFill)}
	if n := len(w.pool); n > 0 {
		b.storage = w.pool[n-1]
		w.pool[n-1] = storage{}
		w.pool = w.pool[:n-1]
	} else {
		b.body = make([]byte, 0, min(firstBytes, w.cfg.BatchBytes))
	}
	w.wakeBy(b.flush)
	return b
}

// recycle keeps s for a later batch, unless one huge document blew it up or there is enough. The Writer is locked.
func (w *Writer) recycle(s storage) {
	w.lastUse = w.now()
	if cap(s.body) < min(firstBytes, w.cfg.BatchBytes) || cap(s.body) > 2*w.cfg.BatchBytes || len(w.pool) > w.cfg.MaxInFlight {
		return
	}
	clear(s.items)
	clear(s.meta)
	w.pool = append(w.pool, storage{body: s.body[:0], items: s.items[:0], meta: s.meta[:0]})
	w.wakeBy(w.lastUse + int64(poolIdle))
}
