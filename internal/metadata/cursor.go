package metadata

import (
	"time"

	"tutti/internal/cache"
)

const (
	// maxCursors is the number of cached cursors.
	maxCursors = 4096
	// cursorLife is how long a cursor is cached.
	cursorLife = 30 * time.Second
	// countLife is how long a row count is used: counting for every page would make paging slower the longer the list is.
	countLife = time.Second
)

// cursor is the position of a row offset in a list.
type cursor struct {
	// after is the sequence number that precedes the offset's row.
	after int64
	// total is the number of rows that the list had, as its reader sees it, when they were counted; zero when not counted.
	total     int
	countedAt time.Time
	// generation is the repository's generation at the time of the count.
	generation uint64
	// afterPage is true for a cursor that a page left, false for one of the current list.
	afterPage bool
	storedAt  time.Time
}

// cursorKey identifies a row offset of a list; offset -1 stands for the list itself, for which only the count is cached.
type cursorKey struct {
	list   string
	offset int
}

// cursorCache remembers where recent pages ended, so that the next pages start there: without counting the rows before them, and
// with the row that followed then, whichever rows have left or joined the list since.
type cursorCache struct {
	now    func() time.Time
	recent *cache.LRU[cursorKey, cursor]
}

func newCursorCache(now func() time.Time) *cursorCache {
	return &cursorCache{now: now, recent: cache.NewLRU[cursorKey, cursor](maxCursors)}
}

func (p *cursorCache) get(key cursorKey) (cursor, bool) {
	found, ok := p.recent.Get(key)
	return found, ok && p.now().Sub(found.storedAt) < cursorLife
}

func (p *cursorCache) put(key cursorKey, found cursor) {
	found.storedAt = p.now()
	p.recent.Put(key, found, 1)
}

// countValid reports whether the cursor's count can still be used. A count of the current list is invalid after this process
// changed an analysis: a client sees its own changes.
func (p *cursorCache) countValid(found *cursor, generation uint64) bool {
	return found.total > 0 && p.now().Sub(found.countedAt) < countLife && (found.afterPage || found.generation == generation)
}
