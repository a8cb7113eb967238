package ingest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"tutti/ingest"
	"tutti/internal/core"
	"tutti/internal/upstream/protocol"
)

// world is a Service with all its ports in memory.
type world struct {
	*queueFake
	letters *deadLettersFake
	service *ingest.Service
}

// newWorld makes a world of two Song repositories, a local and a Lyric one. change may alter the configuration.
func newWorld(t testing.TB, change func(*ingest.Config)) *world {
	t.Helper()
	w := &world{queueFake: &queueFake{}, letters: newLettersFake()}
	cfg := ingest.Config{
		Now: nowAtNoon, Batches: w.queueFake, DeadLetters: w.letters, DeadLetterIndex: w.letters,
		Sources: map[string]ingest.Source{"lyric": {Server: "3"}, "lyric.4": {Server: "9"}}, Formats: protocol.EventFormats(),
	}
	if change != nil {
		change(&cfg)
	}
	all := append(repositories(),
		core.Repository{Code: "local", Type: core.TypeLocal, IndexName: "analyses"},
		core.Repository{Code: "lyric", Type: core.TypeLyric, IndexName: "records"},
		core.Repository{Code: "lyric.4", Type: core.TypeLyric, IndexName: "records"})
	var err error
	if w.service, err = ingest.New(all, w.queueFake, w.queueFake, w.queueFake, cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

// asked returns what was asked for, such as "index song.ca/S/A" or "run song.ca/S", sorted.
func (w *world) asked() []string {
	var all []string
	for _, r := range w.requests() {
		verb := string(r.Kind)
		if r.Scope != core.ScopeRecord {
			verb = "run"
		}
		all = append(all, verb+" "+strings.Trim(r.Repository+"/"+r.Organization+"/"+r.RecordID, "/"))
	}
	slices.Sort(all)
	return all
}

// PublishAll stores each Request for itself.
func (q *queueFake) PublishAll(ctx context.Context, requests []core.Request) []error {
	var errs []error
	for i, r := range requests {
		if err := q.Publish(ctx, r); err != nil {
			if errs == nil {
				errs = make([]error, len(requests))
			}
			errs[i] = err
		}
	}
	return errs
}

// deadLettersFake keeps letters in memory as the queue does: one for each record, and for each source and document.
type deadLettersFake struct {
	mu     sync.Mutex
	byID   map[string]core.DeadLetter
	order  []string
	puts   int
	put    func(core.DeadLetter) error
	delete func(id string) error
}

func newLettersFake() *deadLettersFake { return &deadLettersFake{byID: map[string]core.DeadLetter{}} }

func (f *deadLettersFake) DeadLetterID(l core.DeadLetter) string {
	key := fmt.Sprintf("%q %q %q", l.Repository, l.Organization, l.RecordID)
	if l.Source != "" {
		key = fmt.Sprintf("%q %q", l.Source, l.SHA256)
	} else if l.Request != nil && l.Request.Scope != core.ScopeRecord && l.RecordID == "" {
		key += string(l.Request.Scope) + l.Request.JobID
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

func (f *deadLettersFake) CountReason(repository, reason string) int {
	n := 0
	for _, l := range f.all() {
		if l.Repository == repository && l.Reason == reason {
			n++
		}
	}
	return n
}

func (f *deadLettersFake) Put(_ context.Context, l core.DeadLetter) error {
	if f.put != nil {
		if err := f.put(l); err != nil {
			return err
		}
	}
	l.ID = f.DeadLetterID(l)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts++
	if _, there := f.byID[l.ID]; !there {
		f.order = append(f.order, l.ID)
	}
	f.byID[l.ID] = l
	return nil
}

func (f *deadLettersFake) Get(_ context.Context, id string) (core.DeadLetter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.byID[id]
	if !ok {
		return core.DeadLetter{}, core.NewError(core.CodeNotFound, "no such dead letter")
	}
	return l, nil
}

func (f *deadLettersFake) Delete(_ context.Context, id string) error {
	if f.delete != nil {
		if err := f.delete(id); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.byID[id]; !there {
		return core.NewError(core.CodeNotFound, "no such dead letter")
	}
	delete(f.byID, id)
	return nil
}

// all returns the letters that are there, in the order in which they came.
func (f *deadLettersFake) all() []core.DeadLetter {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []core.DeadLetter
	for _, id := range f.order {
		if l, there := f.byID[id]; there {
			all = append(all, l)
		}
	}
	return all
}

// add keeps a letter and returns its id.
func (f *deadLettersFake) add(t testing.TB, l core.DeadLetter) string {
	t.Helper()
	if err := f.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return f.DeadLetterID(l)
}
