package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// letterEntry is what a process knows of a letter without asking.
type letterEntry struct {
	sequence uint64
	subject  string
	reason   string
	key      letterKey
}

// letterIndex knows which letters there are. One goroutine, the watch, changes it; any number read.
type letterIndex struct {
	// size is the number of letters, for the case that there are none.
	size atomic.Int64

	mu   sync.RWMutex
	byID map[string]letterEntry
	keys map[letterKey]struct{}
	// sorted holds byID's entries, the newest first; nil after a change. It is replaced, never changed.
	sorted []letterEntry
	// seen is the last sequence of the stream that is known here; advanced is closed when it grows.
	seen     uint64
	advanced chan struct{}
	loaded   bool
}

func newLetterIndex() *letterIndex {
	return &letterIndex{
		byID: make(map[string]letterEntry), keys: make(map[letterKey]struct{}), advanced: make(chan struct{}),
	}
}

func (x *letterIndex) has(repository, organization, id string) bool {
	if x.size.Load() == 0 {
		return false
	}
	key := newLetterKey(repository, organization, id)
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.keys[key]
	return ok
}

func (x *letterIndex) get(id string) (letterEntry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byID[id]
	return e, ok
}

// list gives the entries below the sequence before (0 for all), the newest first. The slice is the caller's to read only.
func (x *letterIndex) list(repository, reason string, before uint64) []letterEntry {
	entries := x.newestFirst()
	if before > 0 {
		from, _ := slices.BinarySearchFunc(entries, before-1, func(e letterEntry, sequence uint64) int {
			return cmp.Compare(sequence, e.sequence)
		})
		entries = entries[from:]
	}
	if repository == "" && reason == "" {
		return entries
	}
	repository = shorten(repository)
	var selected []letterEntry
	for _, e := range entries {
		if (repository == "" || e.key.repository == repository) && (reason == "" || e.reason == reason) {
			selected = append(selected, e)
		}
	}
	return selected
}

// newestFirst gives all entries in order. They are sorted once between two changes: a long list is read in many pages.
func (x *letterIndex) newestFirst() []letterEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sorted == nil {
		x.sorted = slices.Collect(maps.Values(x.byID))
		sortBySequence(x.sorted)
	}
	return x.sorted
}

func (x *letterIndex) counts() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := make(map[string]int)
	for _, e := range x.byID {
		counts[e.key.repository]++
	}
	return counts
}

// countReason gives the number of letters of a repository and of a reason.
func (x *letterIndex) countReason(repository, reason string) int {
	repository = shorten(repository)
	x.mu.RLock()
	defer x.mu.RUnlock()
	n := 0
	for _, e := range x.byID {
		if e.key.repository == repository && e.reason == reason {
			n++
		}
	}
	return n
}

// put notes a letter.
func (x *letterIndex) put(subject, reason string, sequence uint64) {
	key, ok := parseDeadSubject(subject)
	x.mu.Lock()
	defer x.mu.Unlock()
	if ok {
		x.byID[letterID(subject)] = letterEntry{sequence: sequence, subject: subject, reason: reason, key: key}
		x.keys[key] = struct{}{}
		x.size.Store(int64(len(x.byID)))
	}
	x.advance(sequence)
}

// remove notes the mark of a removed letter.
func (x *letterIndex) remove(subject string, sequence uint64) {
	id := letterID(subject)
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byID[id]; ok {
		delete(x.byID, id)
		delete(x.keys, e.key)
		x.size.Store(int64(len(x.byID)))
	}
	x.advance(sequence)
}

// advance notes a change and wakes who waits; the lock must be held.
func (x *letterIndex) advance(sequence uint64) {
	x.sorted = nil
	x.seen = max(x.seen, sequence)
	close(x.advanced)
	x.advanced = make(chan struct{})
}

// reset forgets all: the stream was made anew.
func (x *letterIndex) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byID)
	clear(x.keys)
	x.sorted = nil
	x.size.Store(0)
	x.seen = 0
}

func (x *letterIndex) lastSeen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// setLoaded notes that all letters that were there at the start are known.
func (x *letterIndex) setLoaded() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		x.loaded = true
		x.advance(0)
	}
}

// await waits until the watch has come to sequence, the time is over or ctx ends. A change is on disk before it is
// awaited, so it does not matter which.
func (x *letterIndex) await(ctx context.Context, sequence uint64, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for {
		x.mu.RLock()
		seen, advanced := x.seen, x.advanced
		x.mu.RUnlock()
		if seen >= sequence {
			return
		}
		select {
		case <-advanced:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// awaitLoaded waits until the letters that were there at the start are known; an error is ctx's.
func (x *letterIndex) awaitLoaded(ctx context.Context) error {
	for {
		x.mu.RLock()
		loaded, advanced := x.loaded, x.advanced
		x.mu.RUnlock()
		if loaded {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
