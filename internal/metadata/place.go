package metadata

import (
	"sync"
	"time"
)

const (
	// maxPlaces is how many places are remembered.
	maxPlaces = 4096
	// placeLife is how long a place is remembered.
	placeLife = 30 * time.Second
	// countLife is how long a count of rows is good for: counting them for every page would make paging slower the longer
	// the list is.
	countLife = time.Second
)

// place is where a row offset of a list lies.
type place struct {
	// after is the place in the store after which the offset's row comes.
	after int64
	// total is how many rows the list had, as its reader sees it, when they were counted; zero when nobody has counted.
	total     int
	countedAt time.Time
	// generation is that of the repository when the rows were counted.
	generation uint64
	// follows is true for the place that a page left, false for that of the list as it is now.
	follows bool
	at      time.Time
}

// at names a row offset of a list; an offset below zero names the list, of which the count alone is remembered.
type at struct {
	list   string
	offset int
}

// places remembers where the pages that were given lately ended, so that the pages that follow begin there: without
// counting the rows before them, and with the row that followed then, whatever has left or joined the rows before.
type places struct {
	now  func() time.Time
	mu   sync.Mutex
	kept map[at]place
	ring []at // in the order of their first coming
	next int  // where the ring begins again
}

func newPlaces(now func() time.Time) *places {
	return &places{now: now, kept: map[at]place{}}
}

func (p *places) get(key at) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.kept[key]
	return found, ok && p.now().Sub(found.at) < placeLife
}

func (p *places) put(key at, found place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found.at = p.now()
	if _, known := p.kept[key]; !known {
		if len(p.ring) < maxPlaces {
			p.ring = append(p.ring, key)
		} else {
			delete(p.kept, p.ring[p.next])
			p.ring[p.next] = key
			p.next = (p.next + 1) % maxPlaces
		}
	}
	p.kept[key] = found
}

// fresh reports whether the place's count is still good. That of a list as it is now is not once this process has changed an
// analysis: whoever has changed it sees so.
func (p *places) fresh(found *place, generation uint64) bool {
	return found.total > 0 && p.now().Sub(found.countedAt) < countLife && (found.follows || found.generation == generation)
}
