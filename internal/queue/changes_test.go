package queue_test

import (
	"errors"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/deadletter"
)

// changes returns the dead letters that were stored after a position, as record and first, and the position after them.
func changes(t *testing.T, q *queue.Queue, after uint64) (found []deadletter.Change, position uint64) {
	t.Helper()
	position, err := q.DeadLetters().EachStoredAfter(t.Context(), after, func(c deadletter.Change) error {
		found = append(found, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, position
}

// TestDeadLetterChanges: what was stored after a position is read once, and a replacement names the first dead letter of its record
// until that is removed.
func TestDeadLetterChanges(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		d := q.DeadLetters()
		last, err := d.LastSequence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found, position := changes(t, q, last); len(found) != 0 || position != last {
			t.Fatalf("%v up to %d, want none up to %d", found, position, last)
		}
		mustPut(t, q, letter("S1", "A", core.ReasonRejected), letter("S1", "B", core.ReasonTooLarge))
		found, position := changes(t, q, last)
		if len(found) != 2 || found[0].First != found[0].Sequence || found[1].Sequence != position || found[0].Reason != core.ReasonRejected ||
			found[0].Repository != "song" || found[0].StoredAt.IsZero() {
			t.Fatalf("%+v up to %d", found, position)
		}
		first := found[0].First
		mustPut(t, q, letter("S1", "A", core.ReasonRejected), letter("S1", "A", core.ReasonRejected))
		again, position := changes(t, q, position)
		if len(again) != 1 || again[0].First != first || again[0].Sequence == first || again[0].ID != found[0].ID {
			t.Fatalf("the first was %d: %+v", first, again)
		}
		if l, err := d.Changed(t.Context(), again[0]); err != nil || l.RecordID != "A" || l.Attempts != 6 {
			t.Errorf("%+v, %v", l, err)
		}
		if err := d.Clear(t.Context(), "song", "S1", "A", 0, nil); err != nil {
			t.Fatal(err)
		}
		_, err = d.Changed(t.Context(), again[0])
		wantCode(t, err, core.CodeNotFound)
		removed, after := changes(t, q, position)
		if len(removed) != 0 || after <= position {
			t.Errorf("%+v up to %d", removed, after)
		}
		mustPut(t, q, letter("S1", "A", core.ReasonRejected))
		fresh, _ := changes(t, q, after)
		if len(fresh) != 1 || fresh[0].First != fresh[0].Sequence {
			t.Errorf("after the removal: %+v", fresh)
		}
		enough := errors.New("enough")
		if at, err := d.EachStoredAfter(t.Context(), 0, func(deadletter.Change) error { return enough }); !errors.Is(err, enough) || at != 0 {
			t.Errorf("%d, %v", at, err)
		}
	})
}
