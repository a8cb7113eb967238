package consumers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
)

// broker stores Requests as the stream REQUESTS does: one message per subject; a newer one replaces an older one, even if that is
// in flight; a late ack of the old one has no effect; a message that is not acknowledged within the ack wait, or NAKed, is
// redelivered. Timestamps increase, by a microsecond at least, except after setBack.
type broker struct {
	ackWait time.Duration
	// shuffle, when set, orders what a fetch may take; nil: the order of arrival.
	shuffle func([]*entry)

	mu      sync.Mutex
	entries map[string]*entry
	seq     uint64
	last    core.Version
	clock   time.Duration // how far the queue's clock is ahead of the processes' clock
	changed chan struct{}
	// fetches counts the calls of Fetch, delivered the delivered messages.
	fetches, delivered int
	history            []core.Request
	// dropped lists the messages that were delivered maxDeliver times without an ack.
	dropped []core.Request
}

// maxDeliver is the number of deliveries after which the broker drops a message.
const maxDeliver = 20

// entry is a stored message.
type entry struct {
	subject    string
	repository string
	class      core.Class
	seq        uint64
	version    core.Version
	data       []byte
	deliveries int
	due        time.Time // when it may be delivered next
}

func newBroker(ackWait time.Duration) *broker {
	return &broker{ackWait: ackWait, entries: map[string]*entry{}, changed: make(chan struct{})}
}

func subjectOf(r core.Request) (string, core.Class) {
	switch r.Scope {
	case core.ScopeRecord:
		return fmt.Sprintf("%q record %q %q", r.Repository, r.Organization, r.RecordID), core.ClassRecords
	case core.ScopeRecords:
		return fmt.Sprintf("%q records %q", r.Repository, r.ID), core.ClassBatches
	case core.ScopePage:
		if r.Page.Group {
			return fmt.Sprintf("%q group %q %d", r.Repository, r.JobID, r.Page.Number), core.ClassPages
		}
		return fmt.Sprintf("%q page %q %q %d-%d", r.Repository, r.JobID, r.Organization, r.Page.Number, r.Page.Epoch), core.ClassPages
	case core.ScopeOrganization:
		return fmt.Sprintf("%q organization %q %q", r.Repository, r.Organization, r.JobID), core.ClassRuns
	default:
		return fmt.Sprintf("%q repository %q", r.Repository, r.JobID), core.ClassRuns
	}
}

// store puts r on its subject. The broker is locked.
func (b *broker) store(r core.Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.seq++
	b.last = max(b.last+1000, core.Version(time.Now().Add(b.clock).UnixNano()))
	e := &entry{repository: r.Repository, seq: b.seq, version: b.last, data: data}
	e.subject, e.class = subjectOf(r)
	b.entries[e.subject] = e
	b.history = append(b.history, r)
	b.wake()
	return nil
}

func (b *broker) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Publish stores r as the queue does: a Request as of an earlier version is first merged with the pending one of its subject.
func (b *broker) Publish(r core.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.AsOf > 0 {
		over, replaces := b.over(r)
		if !replaces {
			return nil
		}
		r = over
	}
	return b.store(r)
}

// setBack sets the queue's clock back, but never behind the clock of the processes.
func (b *broker) setBack(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d <= b.clock {
		b.clock -= d
		b.last = 0
	}
}

// clear empties the queue, as if its Requests had been moved elsewhere.
func (b *broker) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.entries)
}

// Over returns the result of merging r with the pending Request of its subject, false when the pending one stays.
func (b *broker) Over(r core.Request) (core.Request, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over(r)
}

// over is Over with the broker locked.
func (b *broker) over(r core.Request) (core.Request, bool) {
	subject, _ := subjectOf(r)
	e := b.entries[subject]
	if e == nil {
		return r, true
	}
	return r.MergeWithPending(e.request(), versionOf(e.request(), e.version))
}

func versionOf(r core.Request, stored core.Version) core.Version {
	if r.AsOf == 0 || r.AsOf > stored {
		return stored
	}
	return r.AsOf
}

func (b *broker) Republish(d *delivery, r core.Request, after time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[d.e.subject] != d.e {
		return nil
	}
	r.Attempts += d.count
	r.AsOf = versionOf(r, d.e.version)
	r.NotBefore = time.Now().Add(after)
	return b.store(r)
}

func (b *broker) PendingRecords(repository, organization string) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := map[string]string{}
	for _, e := range b.entries {
		if r := e.request(); r.Scope == core.ScopeRecord && r.Repository == repository && (organization == "" || r.Organization == organization) {
			ids[r.RecordID] = r.Organization
		}
	}
	return ids
}

// Newest returns the version of the newest message.
func (b *broker) Newest() core.Version {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Idle reports whether only runs, or none of the classes, are pending or in flight.
func (b *broker) Idle(repository string, classes ...core.Class) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.repository == repository && e.class != core.ClassRuns && (len(classes) == 0 || slices.Contains(classes, e.class)) {
			return false
		}
	}
	return true
}

func (e *entry) request() core.Request {
	var r core.Request
	if err := json.Unmarshal(e.data, &r); err != nil {
		panic(err)
	}
	return r
}

// Fetch returns messages as soon as there is one, and none to a process that is disconnected.
func (b *broker) Fetch(ctx context.Context, s sourcePort, most int, wait time.Duration) ([]*delivery, error) {
	b.mu.Lock()
	b.fetches++
	b.mu.Unlock()
	until := time.Now().Add(wait)
	for {
		got, next, changed := b.take(s, most)
		if len(got) > 0 {
			return got, nil
		}
		pause := time.Until(until)
		if pause <= 0 {
			return nil, nil
		}
		if !next.IsZero() {
			pause = min(pause, max(0, time.Until(next)))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (b *broker) take(s sourcePort, most int) (got []*delivery, next time.Time, changed chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ready []*entry
	now := time.Now()
	for _, e := range b.entries {
		switch {
		case e.repository != s.repository || e.class != s.class:
		case !e.due.After(now) && e.deliveries == maxDeliver:
			delete(b.entries, e.subject)
			b.dropped = append(b.dropped, e.request())
		case !e.due.After(now):
			ready = append(ready, e)
		case next.IsZero() || e.due.Before(next):
			next = e.due
		}
	}
	slices.SortFunc(ready, func(x, y *entry) int { return cmp.Compare(x.seq, y.seq) })
	if s.p.crashed() || s.p.full.Load() || s.p.cut.Load() != nil {
		return nil, next, b.changed
	}
	if b.shuffle != nil {
		b.shuffle(ready)
	}
	for _, e := range ready[:min(most, len(ready))] {
		e.deliveries++
		e.due = now.Add(b.ackWait)
		b.delivered++
		got = append(got, &delivery{b: b, e: e, request: e.request(), count: e.deliveries})
	}
	return got, next, b.changed
}

// redeliver makes every message of a class available at once, also those in flight.
func (b *broker) redeliver(class core.Class) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.class == class {
			e.due = time.Time{}
		}
	}
	b.wake()
}

// pendingOf counts the messages of a class.
func (b *broker) pendingOf(class core.Class) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.entries {
		if e.class == class {
			n++
		}
	}
	return n
}

// pending lists the subjects that hold a message.
func (b *broker) pending() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	subjects := make([]string, 0, len(b.entries))
	for s := range b.entries {
		subjects = append(subjects, s)
	}
	slices.Sort(subjects)
	return subjects
}

// size counts the subjects that hold a message.
func (b *broker) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// available counts the messages that could be delivered now: not in flight, not delayed.
func (b *broker) available() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.entries {
		if !e.due.After(time.Now()) {
			n++
		}
	}
	return n
}

// published returns the Requests that were stored for a scope, oldest first.
func (b *broker) published(scope core.Scope) []core.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.history), func(r core.Request) bool { return r.Scope != scope })
}

func (b *broker) counts() (fetches, given int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fetches, b.delivered
}

func (b *broker) String() string { return strings.Join(b.pending(), "\n") }

// delivery is one delivery of a message.
type delivery struct {
	b       *broker
	e       *entry
	request core.Request
	count   int
}

func (d *delivery) Ack() {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.b.entries[d.e.subject] == d.e {
		delete(d.b.entries, d.e.subject)
	}
}

// Nak takes effect even if d is not the latest delivery of the message.
func (d *delivery) Nak(delay time.Duration) {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.e.due = time.Now().Add(delay)
	d.b.wake()
}

// InProgress takes effect even if d is not the latest delivery of the message.
func (d *delivery) InProgress() {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.e.due = time.Now().Add(d.b.ackWait)
}
