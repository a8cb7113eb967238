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

// indexEntry is what a process knows of a letter without asking.
type indexEntry struct {
	sequence uint64
	subject  string
	kind     *reasonCount
	// body reports whether the letter is of a record and has a part of its document.
	body bool
}

// reasonCount counts the letters of one repository that have one reason. Its entries share it, so that half a million
// letters do not hold half a million copies of two names.
type reasonCount struct {
	repository *repositoryCount
	reason     string
	letters    int
}

// repositoryCount counts the letters of one repository. It is forgotten with the last of them.
type repositoryCount struct {
	// code is the repository's, shortened as in a subject.
	code            string
	letters, bodies int
	reasons         map[string]*reasonCount
}

// deadLetterIndex knows which letters there are, and counts them as they come and go. One goroutine, the watch, changes it;
// any number read.
type deadLetterIndex struct {
	// size is the number of letters, for the case that there are none.
	size atomic.Int64

	mu           sync.RWMutex
	byHash       map[subjectHash]indexEntry
	repositories map[string]*repositoryCount
	// sorted holds byHash's entries, the newest first; nil after a change. It is replaced, never changed.
	sorted []indexEntry
	// seen is the last sequence of the stream that is known here; advanced is closed when it grows.
	seen     uint64
	advanced chan struct{}
	loaded   bool
}

func newDeadLetterIndex() *deadLetterIndex {
	return &deadLetterIndex{
		byHash: make(map[subjectHash]indexEntry), repositories: make(map[string]*repositoryCount), advanced: make(chan struct{}),
	}
}

func (x *deadLetterIndex) has(repository, organization, id string) bool {
	if x.size.Load() == 0 {
		return false
	}
	var room [512]byte
	hash := hashOf(appendDeadLetterSubject(room[:0], repository, organization, id))
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, ok := x.byHash[hash]
	return ok
}

func (x *deadLetterIndex) get(id string) (indexEntry, bool) {
	hash, ok := parseDeadLetterID(id)
	if !ok {
		return indexEntry{}, false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.byHash[hash]
	return e, ok
}

// list returns the entries below the sequence before (0 for all), the newest first. The slice is the caller's to read only.
func (x *deadLetterIndex) list(repository, reason string, before uint64) []indexEntry {
	entries := x.newestFirst()
	if before > 0 {
		from, _ := slices.BinarySearchFunc(entries, before-1, func(e indexEntry, sequence uint64) int {
			return cmp.Compare(sequence, e.sequence)
		})
		entries = entries[from:]
	}
	if repository == "" && reason == "" {
		return entries
	}
	repository = shorten(repository)
	var selected []indexEntry
	for _, e := range entries {
		if (repository == "" || e.kind.repository.code == repository) && (reason == "" || e.kind.reason == reason) {
			selected = append(selected, e)
		}
	}
	return selected
}

// newestFirst returns all entries in order. They are sorted once between two changes: a long list is read in many pages.
func (x *deadLetterIndex) newestFirst() []indexEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sorted == nil {
		x.sorted = slices.Collect(maps.Values(x.byHash))
		sortBySequence(x.sorted)
	}
	return x.sorted
}

// counts returns the number of letters of each repository that has any.
func (x *deadLetterIndex) counts() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := make(map[string]int, len(x.repositories))
	for code, c := range x.repositories {
		counts[code] = c.letters
	}
	return counts
}

// eachKind calls f for each repository and reason that has letters.
func (x *deadLetterIndex) eachKind(f func(repository, reason string, letters int)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for code, c := range x.repositories {
		for reason, k := range c.reasons {
			f(code, reason, k.letters)
		}
	}
}

// countReason returns the number of letters of a repository that have a reason.
func (x *deadLetterIndex) countReason(repository, reason string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.repositories[shorten(repository)]; c != nil && c.reasons[reason] != nil {
		return c.reasons[reason].letters
	}
	return 0
}

// bodies returns the number of letters of a repository's records that have a part of their document.
func (x *deadLetterIndex) bodies(repository string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.repositories[shorten(repository)]; c != nil {
		return c.bodies
	}
	return 0
}

// put notes a letter, in place of an older one of its subject.
func (x *deadLetterIndex) put(subject, reason string, body bool, sequence uint64) {
	repository, ok := deadLetterRepository(subject)
	x.mu.Lock()
	defer x.mu.Unlock()
	if ok {
		hash := hashOf([]byte(subject))
		x.forget(hash)
		e := indexEntry{sequence: sequence, subject: subject, kind: x.kindOf(repository, reason), body: body}
		x.byHash[hash] = e
		e.count(1)
		x.size.Store(int64(len(x.byHash)))
	}
	x.markChanged(sequence)
}

// remove notes the mark of a removed letter.
func (x *deadLetterIndex) remove(subject string, sequence uint64) {
	hash := hashOf([]byte(subject))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(hash)
	x.size.Store(int64(len(x.byHash)))
	x.markChanged(sequence)
}

// kindOf returns the counters of a repository and a reason; the lock must be held.
func (x *deadLetterIndex) kindOf(repository, reason string) *reasonCount {
	c := x.repositories[repository]
	if c == nil {
		c = &repositoryCount{code: repository, reasons: make(map[string]*reasonCount)}
		x.repositories[repository] = c
	}
	k := c.reasons[reason]
	if k == nil {
		k = &reasonCount{repository: c, reason: reason}
		c.reasons[reason] = k
	}
	return k
}

// forget removes a letter from the index and its counts, if it is there; the lock must be held.
func (x *deadLetterIndex) forget(hash subjectHash) {
	e, ok := x.byHash[hash]
	if !ok {
		return
	}
	delete(x.byHash, hash)
	e.count(-1)
	if k := e.kind; k.letters == 0 {
		delete(k.repository.reasons, k.reason)
		if k.repository.letters == 0 {
			delete(x.repositories, k.repository.code)
		}
	}
}

// count adds n letters like e to the counts of its kind and repository.
func (e indexEntry) count(n int) {
	e.kind.letters += n
	e.kind.repository.letters += n
	if e.body {
		e.kind.repository.bodies += n
	}
}

// markChanged notes a change and wakes who waits; the lock must be held.
func (x *deadLetterIndex) markChanged(sequence uint64) {
	x.sorted = nil
	x.seen = max(x.seen, sequence)
	close(x.advanced)
	x.advanced = make(chan struct{})
}

// reset forgets all: the stream was made anew.
func (x *deadLetterIndex) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byHash)
	clear(x.repositories)
	x.sorted = nil
	x.size.Store(0)
	x.seen = 0
}

func (x *deadLetterIndex) lastSeen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// setLoaded notes that all letters that were there at the start are known.
func (x *deadLetterIndex) setLoaded() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		x.loaded = true
		x.markChanged(0)
	}
}

// await waits until the watch has come to sequence, the time is over or ctx ends. A change is on disk before it is
// awaited, so it does not matter which.
func (x *deadLetterIndex) await(ctx context.Context, sequence uint64, atMost time.Duration) {
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
func (x *deadLetterIndex) awaitLoaded(ctx context.Context) error {
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
