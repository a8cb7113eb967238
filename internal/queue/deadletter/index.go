package deadletter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
)

// entry is the metadata of a dead letter in memory.
type entry struct {
	sequence uint64
	subject  string
	kind     *reasonCount
	// version orders the dead letter with other results of its record, 0 if nothing does.
	version core.Version
	// body reports whether the dead letter is of a record and has a document.
	body bool
	// named reports whether the retry of the dead letter needs no more than the names in its subject.
	named bool
}

// reasonCount counts the dead letters of one repository with one reason. Index entries share it, so that half a
// million dead letters do not hold half a million copies of two names.
type reasonCount struct {
	repository *repositoryCount
	reason     string
	letters    int
}

// repositoryCount counts the dead letters of one repository. It is removed with the last of them.
type repositoryCount struct {
	// code is the repository's, shortened as in a subject.
	code            string
	letters, bodies int
	reasons         map[string]*reasonCount
}

// index holds the metadata of all dead letters and counts them. One goroutine, the watch, changes it; any
// number read it.
type index struct {
	// size is the number of dead letters, a fast path for none.
	size atomic.Int64

	mu sync.RWMutex
	// byHash holds the sequence of each dead letter.
	byHash       map[subjectHash]uint64
	repositories map[string]*repositoryCount
	// entries holds all dead letters by their sequence. A removed one leaves an entry without a kind; removed counts these. Once they are
	// half of entries, entries are copied without them.
	entries []entry
	removed int
	// seen is the last sequence of the stream that was applied; advanced is closed when it grows.
	seen     uint64
	advanced chan struct{}
	loaded   bool
}

func newIndex() *index {
	return &index{
		byHash: make(map[subjectHash]uint64), repositories: make(map[string]*repositoryCount), advanced: make(chan struct{}),
	}
}

func (x *index) has(repository, organization, id string) bool {
	var room [512]byte
	_, ok := x.on(subjects.AppendRecordDeadLetter(room[:0], repository, organization, id))
	return ok
}

// on returns the entry of the dead letter on a subject.
func (x *index) on(subject []byte) (entry, bool) {
	if x.size.Load() == 0 {
		return entry{}, false
	}
	return x.of(hashOf(subject))
}

func (x *index) get(id string) (entry, bool) {
	hash, ok := parseID(id)
	if !ok {
		return entry{}, false
	}
	return x.of(hash)
}

// of returns the entry of the subject with a hash.
func (x *index) of(hash subjectHash) (entry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sequence, ok := x.byHash[hash]
	if !ok {
		return entry{}, false
	}
	return x.entries[x.position(sequence)], true
}

// position returns the position in entries of a sequence, or of the first one after it; the lock must be held.
func (x *index) position(sequence uint64) int {
	i, _ := slices.BinarySearchFunc(x.entries, sequence, func(e entry, sequence uint64) int { return cmp.Compare(e.sequence, sequence) })
	return i
}

// list returns the entries that f selects below the sequence before (0 for all), the newest first, at most limit.
func (x *index) list(f core.DeadLetterFilter, before uint64, limit int) []entry {
	var selected []entry
	x.each(before, func(e entry) bool {
		if e.matches(f) {
			selected = append(selected, e)
		}
		return len(selected) < limit
	})
	return selected
}

// sequences returns the sequences of all that list would return.
func (x *index) sequences(f core.DeadLetterFilter, before uint64) []uint64 {
	var selected []uint64
	x.each(before, func(e entry) bool {
		if e.matches(f) {
			selected = append(selected, e.sequence)
		}
		return true
	})
	return selected
}

// at returns the entries that are still there of sequences.
func (x *index) at(sequences []uint64) []entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	entries := make([]entry, 0, len(sequences))
	for _, sequence := range sequences {
		if i := x.position(sequence); i < len(x.entries) && x.entries[i].sequence == sequence && x.entries[i].kind != nil {
			entries = append(entries, x.entries[i])
		}
	}
	return entries
}

// matches reports whether f selects a dead letter.
func (e entry) matches(f core.DeadLetterFilter) bool {
	return (f.Repository == "" || e.kind.repository.code == subjects.Shorten(f.Repository)) && (f.Reason == "" || e.kind.reason == f.Reason) &&
		(f.Organization == "" || subjects.IsDeadLetterOf(e.subject, f.Organization))
}

// each calls f with the entries below the sequence before (0 for all), the newest first, until it returns false. The index is locked: f
// must not block.
func (x *index) each(before uint64, f func(entry) bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := len(x.entries)
	if before > 0 {
		end = x.position(before)
	}
	for i := end - 1; i >= 0; i-- {
		if e := x.entries[i]; e.kind != nil && !f(e) {
			return
		}
	}
}

// counts returns the number of dead letters of each repository that has any.
func (x *index) counts() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := make(map[string]int, len(x.repositories))
	for code, c := range x.repositories {
		counts[code] = c.letters
	}
	return counts
}

// eachKind calls f for each repository and reason that has dead letters.
func (x *index) eachKind(f func(repository, reason string, letters int)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for code, c := range x.repositories {
		for reason, k := range c.reasons {
			f(code, reason, k.letters)
		}
	}
}

// countReason returns the number of dead letters of a repository with a reason.
func (x *index) countReason(repository, reason string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.repositories[subjects.Shorten(repository)]; c != nil && c.reasons[reason] != nil {
		return c.reasons[reason].letters
	}
	return 0
}

// bodies returns the number of dead letters of a repository's records that have a document.
func (x *index) bodies(repository string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.repositories[subjects.Shorten(repository)]; c != nil {
		return c.bodies
	}
	return 0
}

// put adds a dead letter with a reason, in place of an older one of its subject. Its sequence is higher than all before. It sets e.kind.
func (x *index) put(e entry, reason string) {
	repository, ok := subjects.DeadLetterRepository(e.subject)
	x.mu.Lock()
	defer x.mu.Unlock()
	if ok {
		hash := hashOf([]byte(e.subject))
		x.forget(hash)
		e.kind = x.kindOf(repository, reason)
		x.byHash[hash] = e.sequence
		x.entries = append(x.entries, e)
		e.count(1)
		x.size.Store(int64(len(x.byHash)))
	}
	x.markChanged(e.sequence)
}

// remove applies the tombstone of a removed dead letter.
func (x *index) remove(subject string, sequence uint64) {
	hash := hashOf([]byte(subject))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(hash)
	x.size.Store(int64(len(x.byHash)))
	x.markChanged(sequence)
}

// kindOf returns the counters of a repository and a reason; the lock must be held.
func (x *index) kindOf(repository, reason string) *reasonCount {
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

// forget removes a dead letter from the index and its counts, if it is there; the lock must be held.
func (x *index) forget(hash subjectHash) {
	sequence, ok := x.byHash[hash]
	if !ok {
		return
	}
	delete(x.byHash, hash)
	i := x.position(sequence)
	e := x.entries[i]
	x.entries[i] = entry{sequence: sequence}
	if x.removed++; 2*x.removed > len(x.entries) {
		left := make([]entry, 0, len(x.entries)-x.removed)
		for _, e := range x.entries {
			if e.kind != nil {
				left = append(left, e)
			}
		}
		x.entries, x.removed = left, 0
	}
	e.count(-1)
	if k := e.kind; k.letters == 0 {
		delete(k.repository.reasons, k.reason)
		if k.repository.letters == 0 {
			delete(x.repositories, k.repository.code)
		}
	}
}

// count adds n dead letters like e to the counts of its reason and repository.
func (e entry) count(n int) {
	e.kind.letters += n
	e.kind.repository.letters += n
	if e.body {
		e.kind.repository.bodies += n
	}
}

// markChanged records a change and wakes waiting goroutines; the lock must be held.
func (x *index) markChanged(sequence uint64) {
	x.seen = max(x.seen, sequence)
	close(x.advanced)
	x.advanced = make(chan struct{})
}

// reset removes everything: the stream was created anew.
func (x *index) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.byHash)
	clear(x.repositories)
	x.entries, x.removed = nil, 0
	x.size.Store(0)
	x.seen = 0
}

func (x *index) lastSeen() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.seen
}

// setLoaded marks that all dead letters that existed at the start are loaded.
func (x *index) setLoaded() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded {
		x.loaded = true
		x.markChanged(0)
	}
}

// await blocks until the watch has applied sequence, atMost has passed or ctx ends, and reports the first. The caller's change is on
// disk in any case.
func (x *index) await(ctx context.Context, sequence uint64, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for {
		x.mu.RLock()
		seen, advanced := x.seen, x.advanced
		x.mu.RUnlock()
		if seen >= sequence {
			return true
		}
		select {
		case <-advanced:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// awaitLoaded blocks until the dead letters that existed at the start are loaded; an error is ctx's.
func (x *index) awaitLoaded(ctx context.Context) error {
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

// subjectHash identifies the subject of a dead letter.
type subjectHash [18]byte

func hashOf(subject []byte) subjectHash {
	sum := sha256.Sum256(subject)
	return subjectHash(sum[:len(subjectHash{})])
}

// idOf returns the opaque id of the dead letter on a subject: 24 characters that need no escaping in a URL.
func idOf(subject string) string {
	hash := hashOf([]byte(subject))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

// parseID decodes an id to the hash of its subject; false when it is not an id.
func parseID(id string) (subjectHash, bool) {
	var hash subjectHash
	if base64.RawURLEncoding.EncodedLen(len(hash)) != len(id) {
		return hash, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(hash[:], []byte(id))
	return hash, err == nil && n == len(hash)
}
