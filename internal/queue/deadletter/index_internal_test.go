package deadletter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
)

// TestIndexOrder compares the index with a map during random changes: every page, filter and lookup.
func TestIndexOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 36))
	type letter struct {
		id, reason string
	}
	x, model := newIndex(), map[uint64]letter{} // by sequence
	repositories := []string{"song", "lyric"}
	subject := func(id string) string { return subjects.OfRecordDeadLetter(repositories[len(id)%2], "S", id) }
	sequenceOf := func(id string) uint64 {
		for sequence, l := range model {
			if l.id == id {
				return sequence
			}
		}
		return 0
	}
	for sequence := uint64(1); sequence < 1200; sequence++ {
		id := fmt.Sprint(r.IntN(120))
		delete(model, sequenceOf(id))
		switch {
		case r.IntN(3) > 0 && sequence%400 < 300:
			reason := []string{core.ReasonRejected, core.ReasonUpstream}[r.IntN(2)]
			x.put(entry{subject: subject(id), version: 1, sequence: sequence}, reason)
			model[sequence] = letter{id, reason}
		default: // at the end of each 400 changes all are removed
			x.remove(subject(id), sequence)
		}
		if len(x.entries) > 2*len(model)+1 || int(x.size.Load()) != len(model) {
			t.Fatalf("after %d changes: %d entries and size %d for %d dead letters", sequence, len(x.entries), x.size.Load(), len(model))
		}
		before, limit := r.Uint64N(sequence+2), 1+r.IntN(20)
		repository, reason := append(repositories, "")[r.IntN(3)], []string{core.ReasonRejected, core.ReasonUpstream, ""}[r.IntN(3)]
		var want, got []uint64
		for _, s := range slices.Backward(slices.Sorted(maps.Keys(model))) {
			l := model[s]
			if (before == 0 || s < before) && (reason == "" || l.reason == reason) &&
				(repository == "" || repositories[len(l.id)%2] == repository) {
				want = append(want, s)
			}
		}
		for _, e := range x.list(core.DeadLetterFilter{Repository: repository, Reason: reason}, before, limit) {
			got = append(got, e.sequence)
		}
		all := x.sequences(core.DeadLetterFilter{Repository: repository, Reason: reason}, before)
		if !slices.Equal(got, want[:min(limit, len(want))]) || !slices.Equal(all, want) {
			t.Fatalf("after %d changes, %q %q below %d, at most %d: %v, want %v", sequence, repository, reason, before, limit, got, want)
		}
		for _, e := range x.at([]uint64{sequence - 1, sequence, sequence + 1}) {
			if model[e.sequence].id == "" || e.subject != subject(model[e.sequence].id) {
				t.Fatalf("after %d changes: %+v", sequence, e)
			}
		}
		if e, found := x.get(idOf(subject(id))); found != (sequenceOf(id) > 0) || found && e.sequence != sequenceOf(id) {
			t.Fatalf("%s: %v %v, want %d", id, e, found, sequenceOf(id))
		}
	}
}

// TestPageAfterChange: a page of many dead letters allocates for what it returns, also after a change.
func TestPageAfterChange(t *testing.T) {
	const letters, limit = 50_000, 51
	x := newIndex()
	put := func(sequence uint64) {
		x.put(entry{subject: subjects.OfRecordDeadLetter("song", "S", fmt.Sprint(sequence)), version: 1, sequence: sequence}, core.ReasonRejected)
	}
	for i := range uint64(letters) {
		put(i + 1)
	}
	var before, after runtime.MemStats
	var most uint64
	for i := range uint64(10) {
		put(letters + i + 1)
		runtime.ReadMemStats(&before)
		page := x.list(core.DeadLetterFilter{Repository: "song", Reason: core.ReasonRejected}, 0, limit)
		runtime.ReadMemStats(&after)
		if len(page) != limit || page[0].sequence != letters+i+1 {
			t.Fatalf("%d entries, the first %+v", len(page), page[0])
		}
		most = max(most, after.TotalAlloc-before.TotalAlloc)
	}
	if most > 64<<10 {
		t.Errorf("a page of %d allocated %d bytes", limit, most)
	}
}
