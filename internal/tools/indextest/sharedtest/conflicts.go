package sharedtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"tutti/consumers/outcome"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/merged"
)

// letterKey identifies the dead letter of a record.
type letterKey struct{ repository, organization, id string }

// letters are dead letters that several processes share.
type letters struct {
	mu  sync.Mutex
	all map[letterKey]core.DeadLetter
}

// errKilled ends what a process does, like its end.
var errKilled = errors.New("killed")

// letterView is how a process sees letters: what it knows without reading lags behind, and it may end before or after each change.
type letterView struct {
	*letters
	kills bool
	stall func()
	known sync.Map // of letterKey
}

func (v *letterView) kill() error {
	if v.kills && rand.IntN(6) == 0 {
		return errKilled
	}
	return nil
}

// see makes the process know of a dead letter, or of its end, unless that is late.
func (v *letterView) see(k letterKey, has bool) {
	switch {
	case rand.IntN(2) == 0:
	case has:
		v.known.Store(k, true)
	default:
		v.known.Delete(k)
	}
}

func (v *letterView) Put(_ context.Context, l core.DeadLetter) error {
	v.stall()
	if err := v.kill(); err != nil {
		return err
	}
	k := letterKey{l.Repository, l.Organization, l.RecordID}
	v.mu.Lock()
	v.all[k] = l
	v.mu.Unlock()
	v.see(k, true)
	return v.kill()
}

func (v *letterView) Clear(_ context.Context, repository, organization, id string, at core.Version, clears func(core.DeadLetter) bool) error {
	if at > 0 && !v.Has(repository, organization, id) {
		return nil
	}
	v.stall()
	if err := v.kill(); err != nil {
		return err
	}
	k := letterKey{repository, organization, id}
	v.mu.Lock()
	if l, has := v.all[k]; has && clears(l) {
		delete(v.all, k)
	}
	v.mu.Unlock()
	v.see(k, false)
	return v.kill()
}

func (v *letterView) Has(repository, organization, id string) bool {
	_, has := v.known.Load(letterKey{repository, organization, id})
	return has
}

func (v *letterView) Find(_ context.Context, repository, organization, id string) (core.DeadLetter, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l, has := v.all[letterKey{repository, organization, id}]
	if !has {
		return l, core.NewError(core.CodeNotFound, "no such dead letter")
	}
	return l, nil
}

// conflictRecord is a record of a repository, nil where it has none.
type conflictRecord struct {
	organization, name string
	updated            int
}

// conflictRequest asks for a record of a repository as it is then.
type conflictRequest struct {
	repo    int
	id      string
	version core.Version
}

// conflictWorld is repositories whose records change at once, the Requests for these, and the processes that do them.
type conflictWorld struct {
	*sharing
	kills   bool
	letters *letters
	// done counts the Requests that were done, so that a slow process goes on after those of others.
	done atomic.Int64

	mu      sync.Mutex
	records []map[string]*conflictRecord
	open    []conflictRequest
	// newest are the newest Requests: an older one that has not ended is not repeated.
	newest  map[string]core.Version
	version core.Version
	updated int
}

func (w *conflictWorld) request(repo int, id string) {
	w.version++
	r := conflictRequest{repo, id, w.version}
	w.newest[fmt.Sprint(repo, id)] = w.version
	w.open = append(w.open, r)
}

// change changes or removes the record of an id in a random repository, and requests it.
func (w *conflictWorld) change(random *rand.Rand, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	repo := random.IntN(len(w.repositories))
	w.updated++
	w.records[repo][id] = &conflictRecord{fmt.Sprint("S", random.IntN(8)/7), fmt.Sprint("n", random.IntN(2)), w.updated*7919%100_000 + 1}
	if random.IntN(4) == 0 {
		w.records[repo][id] = nil
	}
	w.request(repo, id)
}

// take returns a random open Request, and its record as it is now.
func (w *conflictWorld) take() (r conflictRequest, record *conflictRecord, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.open) == 0 {
		return r, nil, false
	}
	at := rand.IntN(min(len(w.open), 3)) // about in order
	r = w.open[at]
	w.open = slices.Delete(w.open, at, at+1)
	return r, w.records[r.repo][r.id], true
}

// repeat requests again what a killed process has not ended.
func (w *conflictWorld) repeat(r conflictRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest[fmt.Sprint(r.repo, r.id)] == r.version {
		w.open = append(w.open, r)
	}
}

// process returns the outcomes of each repository in a new process, which knows of all dead letters.
func (w *conflictWorld) process() (index.Index, []*outcome.Outcomes) {
	x, view := merged.New(w.x, w.repositories), &letterView{letters: w.letters, kills: w.kills, stall: w.stall}
	w.letters.mu.Lock()
	for k := range w.letters.all {
		view.known.Store(k, true)
	}
	w.letters.mu.Unlock()
	var all []*outcome.Outcomes
	for _, repo := range w.repositories {
		all = append(all, outcome.New(view, nil, outcome.Config{
			Repository: repo, Logger: slog.New(slog.DiscardHandler),
			Shared: &outcome.Shared{
				State: func(ctx context.Context, alias, id string) (core.SharedState, error) {
					defer w.stall()
					return x.Of(repo).State(ctx, alias, id)
				},
				Publish: w.publish,
			},
		}))
	}
	return x, all
}

func (w *conflictWorld) publish(_ context.Context, r core.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.request(slices.IndexFunc(w.repositories, func(repo core.Repository) bool { return repo.Code == r.Repository }), r.RecordID)
	return nil
}

// stall makes some steps of a process so slow that others do several Requests in between.
func (w *conflictWorld) stall() {
	if rand.IntN(2) > 0 {
		return
	}
	for target, n := w.done.Load()+int64(rand.IntN(4)), 0; n < 20_000 && w.done.Load() < target; n++ {
		runtime.Gosched()
	}
}

// do writes the record of a Request and settles the result.
func (w *conflictWorld) do(ctx context.Context, x index.Index, outcomes []*outcome.Outcomes, r conflictRequest, record *conflictRecord) error {
	write, organization := w.remove(r.repo, r.id, r.version), "S0"
	if record != nil {
		organization = record.organization
		write = w.put(r.repo, r.id, r.version, w.record(r.repo, organization, fmt.Sprintf("2024-01-01T00:%02d:%02d.%03dZ",
			record.updated/60_000, record.updated/1000%60, record.updated%1000), record.name))
	}
	defer w.done.Add(1)
	result := w.writeTo(ctx, x, write)[0]
	w.stall()
	if result.Outcome == core.OutcomeRetry {
		return errKilled
	}
	if w.kills && rand.IntN(6) == 0 {
		return errKilled
	}
	return outcomes[r.repo].Settle(ctx, core.Request{
		Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: w.repositories[r.repo].Code, Organization: organization, RecordID: r.id,
	}, organization, r.id, 1, result)
}

// run does the open Requests in a process, and in another one after it was killed, until there are none and changed is closed.
func (w *conflictWorld) run(changed <-chan struct{}) {
	x, outcomes := w.process()
	for {
		r, record, ok := w.take()
		if !ok {
			select {
			case <-changed:
				return
			default:
				continue
			}
		}
		err := w.do(w.Context(), x, outcomes, r, record)
		switch {
		case errors.Is(err, errKilled):
			w.repeat(r)
			x, outcomes = w.process()
		case err != nil:
			w.Errorf("%+v: %v", r, err)
			return
		}
	}
}

// want returns the dead letters that the records call for.
func (w *conflictWorld) want() []string {
	var want []string
	ids := map[string]bool{}
	for _, records := range w.records {
		for id := range records {
			ids[id] = true
		}
	}
	for id := range ids {
		var newest *conflictRecord
		for _, records := range w.records {
			if r := records[id]; r != nil && (newest == nil || r.updated > newest.updated) {
				newest = r
			}
		}
		for repo, records := range w.records {
			if r := records[id]; r != nil && (r.name != newest.name || r.organization != newest.organization) {
				want = append(want, w.repositories[repo].Code+" "+r.organization+" "+id)
			}
		}
	}
	slices.Sort(want)
	return want
}

// got returns the dead letters as they are stored, and checks that each holds its record.
func (w *conflictWorld) got() []string {
	var got []string
	for k, l := range w.letters.all {
		got = append(got, k.repository+" "+k.organization+" "+k.id)
		if len(l.Document) == 0 {
			w.Errorf("the dead letter of %v has no document", k)
		}
	}
	slices.Sort(got)
	return got
}

// testConflictLetters: repositories change and remove the same records at once, and several processes do the Requests. In the end a record
// has a dead letter of a conflict if and only if it differs from the newer one of another repository.
func testConflictLetters(s *sharing) { s.conflictLetters(false) }

// testKilledConflictLetters is testConflictLetters with processes that are killed between any two steps. The Requests that were in flight
// are repeated, unless there was a newer one. What is left then, the check of the next start removes.
func testKilledConflictLetters(s *sharing) { s.conflictLetters(true) }

func (s *sharing) conflictLetters(kills bool) {
	const changes, together, workers, rounds = 120, 4, 4, 3
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	w := &conflictWorld{sharing: s, kills: kills, letters: &letters{all: map[letterKey]core.DeadLetter{}}, newest: map[string]core.Version{}}
	for range s.repositories {
		w.records = append(w.records, map[string]*conflictRecord{})
	}
	for round := range rounds {
		changed := make(chan struct{})
		var processes sync.WaitGroup
		for range workers {
			processes.Go(func() { w.run(changed) })
		}
		random := rand.New(rand.NewPCG(seed, uint64(round)))
		for n := range changes { // several of one document, one after the other
			w.change(random, fmt.Sprint("c", n/together))
		}
		close(changed)
		processes.Wait()
		if kills {
			w.check()
		}
		if diff := cmp.Diff(w.want(), w.got()); diff != "" {
			s.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
	}
}

// check checks all dead letters, as the next start does, and does the Requests that follow.
func (w *conflictWorld) check() {
	w.kills = false
	defer func() { w.kills = true }()
	_, outcomes := w.process()
	w.letters.mu.Lock()
	all := make([]core.DeadLetter, 0, len(w.letters.all))
	for _, l := range w.letters.all {
		all = append(all, l)
	}
	w.letters.mu.Unlock()
	for _, l := range all {
		repo := slices.IndexFunc(w.repositories, func(r core.Repository) bool { return r.Code == l.Repository })
		if err := outcomes[repo].CheckConflict(w.Context(), l); err != nil {
			w.Error(err)
		}
	}
	done := make(chan struct{})
	close(done)
	w.run(done)
}
