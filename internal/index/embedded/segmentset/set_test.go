package segmentset_test

import (
	"fmt"
	"slices"
	"testing"

	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/embedded/segmentset"
	"tutti/internal/index/mapping"
)

// segmentOf returns a segment of documents with row numbers, which are ascending.
func segmentOf(t *testing.T, rows ...uint64) *segment.Segment {
	t.Helper()
	b := segment.NewBuilder(mapping.Song())
	for _, row := range rows {
		if err := b.Add(row, fmt.Sprint("d", row), []byte(`{"studyId":"S"}`)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Segment()
}

// rowsOf returns the row numbers that a search of a snapshot finds; nil for none.
func rowsOf(s *segmentset.Snapshot) (rows []uint64) {
	if s == nil {
		return nil
	}
	for _, part := range s.Parts {
		for i, row := range part.Segment.Numbers() {
			if part.Deleted == nil || !part.Deleted.Contains(uint32(i)) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// TestUpdate checks which state searches see before, during and after a transaction, whether it succeeds or fails.
func TestUpdate(t *testing.T) {
	for _, done := range []bool{true, false} {
		set := segmentset.New("a", 0)
		if !set.Loading() {
			t.Error("a new set is not loading")
		}
		set.Publish(nil)
		if set.Loading() {
			t.Error("a published set is loading")
		}
		first, _ := set.Prepare(3, segmentOf(t, 1, 2, 3), nil)
		set.Finish(first, true)
		second, logged := set.Prepare(4, segmentOf(t, 4), []uint64{3, 1})
		if len(logged) > 0 {
			t.Errorf("the deletions %v are logged, of a segment without a file", logged)
		}
		before, after := []uint64{1, 2, 3}, []uint64{2, 4}
		if got := rowsOf(set.Current()); !slices.Equal(got, before) || !set.CommitPending(4) {
			t.Errorf("during the transaction, %v are found", got)
		}
		if a, b := rowsOf(set.SnapshotAt(3)), rowsOf(set.SnapshotAt(4)); !slices.Equal(a, before) || !slices.Equal(b, after) {
			t.Errorf("the snapshots are %v and %v", a, b)
		}
		set.Finish(second, done)
		want, row, gone := before, uint64(3), uint64(4)
		if done {
			want, row, gone = after, 4, 3
		}
		if got := rowsOf(set.Current()); !slices.Equal(got, want) || set.Row() != row || set.CommitPending(4) || set.SnapshotAt(gone) != nil {
			t.Errorf("done %v: %v up to row %d", done, got, set.Row())
		}
	}
}

// TestUpdateWhileLoading checks that documents that are deleted before their segments are loaded are not found afterwards.
func TestUpdateWhileLoading(t *testing.T) {
	set := segmentset.New("a", 3)
	update, logged := set.Prepare(4, segmentOf(t, 4), []uint64{2})
	set.Finish(update, true)
	if !slices.Equal(logged, []uint64{2}) || set.Current() != nil {
		t.Errorf("the deletions %v are logged, and %v is found", logged, rowsOf(set.Current()))
	}
	set.Publish(segmentset.MembersOf(segmentOf(t, 1, 2, 3)))
	if got := rowsOf(set.Current()); !slices.Equal(got, []uint64{1, 3, 4}) {
		t.Errorf("%v are found", got)
	}
}

// TestGaps checks which rows are rebuilt, and that pieces of them are neither too many nor overlap.
func TestGaps(t *testing.T) {
	members := segmentset.MembersOf(segmentOf(t, 3, 4), segmentOf(t, 6, 9))
	if got, want := segmentset.Gaps(members, 12), []segmentset.Range{{1, 2}, {5, 5}, {10, 12}}; !slices.Equal(got, want) {
		t.Errorf("the gaps are %v, want %v", got, want)
	}
	if got := segmentset.Gaps(members, 9); !slices.Equal(got, []segmentset.Range{{1, 2}, {5, 5}}) {
		t.Errorf("up to the last row, the gaps are %v", got)
	}
	gaps := []segmentset.Range{{1, 100}, {200, 600_000}}
	next := uint64(1)
	for _, piece := range segmentset.Split(gaps, 300_000, 600_000) {
		if next == 101 {
			next = 200
		}
		if piece.First != next || piece.Last < piece.First || piece.Last-piece.First >= 2*65_536 {
			t.Errorf("%v follows up to %d", piece, next)
		}
		next = piece.Last + 1
	}
	if next != 600_001 {
		t.Errorf("the pieces end before %d", next)
	}
}
