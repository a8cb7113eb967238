package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// TestDeadLettersByVersion: whatever two processes settle for a record, in any order and at once, the result with the newest version
// decides whether it has a dead letter, and which.
func TestDeadLettersByVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		processes := []*queue.Queue{s.connect(t, queue.Config{}), s.connect(t, queue.Config{})}
		hour := core.Version(time.Now().Add(-time.Hour).UnixNano())
		settle := func(process int, id string, version core.Version, rejected bool) {
			d := processes[process].DeadLetters()
			err := error(nil)
			if rejected {
				l := letter("S1", id, core.ReasonRejected)
				l.Version = version
				err = d.Put(t.Context(), l)
			} else {
				err = d.Clear(t.Context(), "song", "S1", id, version, nil)
			}
			if err != nil {
				t.Error(err)
			}
		}
		// barrier waits until both processes know of everything that was stored before.
		barrier := func(number int) {
			t.Helper()
			for _, q := range processes {
				number += 10
				id := fmt.Sprint("barrier ", number)
				mustPut(t, q, letter("S1", id, core.ReasonRejected))
				for _, other := range processes {
					eventually(t, id, func() bool { return other.DeadLetters().Has("song", "S1", id) })
				}
			}
		}
		want := map[string]core.Version{} // of the dead letter, 0 for none
		var first []func()
		var settling sync.WaitGroup
		each := func(bits int, order string) {
			is := func(bit int) bool { return bits>>bit&1 == 1 }
			one := func(bit int) int { return bits >> bit & 1 }
			id := fmt.Sprintf("%s %05b", order, bits)
			older := func() { settle(one(0), id, hour+2, is(2)) }
			newer := func() { settle(one(1), id, hour+3, is(3)) }
			if want[id] = 0; is(3) {
				want[id] = hour + 3
			}
			if is(4) { // an earlier failure
				first = append(first, func() { settle(0, id, hour+1, true) })
			}
			switch order {
			case "older first":
				first = append(first, older, newer)
			case "newer first":
				first = append(first, newer, older)
			default:
				first = append(first, func() {
					settling.Go(older)
					settling.Go(newer)
				})
			}
		}
		for bits := range 1 << 5 {
			for _, order := range []string{"older first", "newer first", "at once"} {
				each(bits, order)
			}
		}
		for _, f := range first {
			f()
		}
		settling.Wait()
		for number, when := range []string{"afterwards", "later"} {
			barrier(number)
			for id, version := range want {
				eventually(t, when+": the result of "+id, func() bool {
					l, err := processes[0].DeadLetters().Find(t.Context(), "song", "S1", id)
					return version == 0 && core.CodeOf(err) == core.CodeNotFound || err == nil && version > 0 && l.Version == version
				})
			}
		}
	})
}

// TestDeadLettersWithoutOrder: a success removes the dead letter of an earlier release, which has no version, and one of a time ahead of
// the clock, which was set back since. That of a conflict, which the document decides about, is stored after a newer success too.
func TestDeadLettersWithoutOrder(t *testing.T) {
	t.Parallel()
	d := startServer(t, t.TempDir(), "").connect(t, queue.Config{}).DeadLetters()
	now := core.Version(time.Now().UnixNano())
	for id, version := range map[string]core.Version{"no version": 0, "ahead": now + core.Version(time.Hour)} {
		l := letter("S1", id, core.ReasonRejected)
		l.Version = version
		for _, at := range []core.Version{now, now + 1} {
			if err := d.Put(t.Context(), l); err != nil || !d.Has("song", "S1", id) {
				t.Fatal(id, err)
			}
			if err := d.Clear(t.Context(), "song", "S1", id, at, nil); err != nil || d.Has("song", "S1", id) {
				t.Errorf("%s: the dead letter stays: %v", id, err)
			}
		}
	}
	conflict := letter("S1", "conflict", core.ReasonConflict)
	conflict.Version = now
	older := letter("S1", "conflict", core.ReasonRejected)
	older.Version = now - 1
	if err := d.Clear(t.Context(), "song", "S1", "conflict", now+1, nil); err != nil {
		t.Fatal(err)
	}
	for _, l := range []core.DeadLetter{conflict, older} {
		if err := d.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := d.Find(t.Context(), "song", "S1", "conflict"); err != nil || l.Reason != core.ReasonConflict {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestClearDoesNotRead: a dead letter that is ordered by its version is removed without reading its document, which may be large; after it
// was replaced by a newer one, that one stays.
func TestClearDoesNotRead(t *testing.T) {
	t.Parallel()
	d := startServer(t, t.TempDir(), "").connect(t, queue.Config{}).DeadLetters()
	now := core.Version(time.Now().UnixNano())
	l := letter("S1", "A1", core.ReasonRejected)
	l.Version = now
	mustClear := func(at core.Version, clears func(core.DeadLetter) bool) {
		t.Helper()
		if err := d.Clear(t.Context(), "song", "S1", "A1", at, clears); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	mustClear(now-1, nil)
	var asked []core.DeadLetter
	mustClear(now, func(l core.DeadLetter) bool { asked = append(asked, l); return false })
	if !d.Has("song", "S1", "A1") {
		t.Error("a dead letter that is newer, or that stays, is gone")
	}
	mustClear(now, func(l core.DeadLetter) bool { asked = append(asked, l); return true })
	for _, got := range asked {
		if want := (core.DeadLetter{Reason: core.ReasonRejected, Version: now}); !cmp.Equal(got, want) {
			t.Errorf("it was decided by %+v", got)
		}
	}
	if _, err := d.Find(t.Context(), "song", "S1", "A1"); len(asked) != 2 || d.Has("song", "S1", "A1") || core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("asked %d times, then %v", len(asked), err)
	}
}
