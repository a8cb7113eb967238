package segmentset

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
)

// Member is one segment of a Set and its deletions. The bitmaps are immutable.
type Member struct {
	segment *segment.Segment
	// deleted are the documents that were rewritten or removed; nil for none.
	deleted *roaring.Bitmap
	// file is the file of the segment; its number is zero when the segment is only in memory.
	file file
	// savedDeleted is deleted as saved in the manifest.
	savedDeleted *roaring.Bitmap
	// merging is set while a merge reads the segment.
	merging bool
}

// liveCount returns the number of documents that are not deleted.
func (v *Member) liveCount() int { return v.segment.Documents() - v.deletedCount() }

func (v *Member) deletedCount() int {
	if v.deleted == nil {
		return 0
	}
	return int(v.deleted.GetCardinality())
}

// Rows returns the lowest and the highest row number of the documents, deleted or not. A segment is never empty.
func (v *Member) Rows() (first, last uint64) {
	numbers := v.segment.Numbers()
	return numbers[0], numbers[len(numbers)-1]
}

func (v *Member) last() uint64 {
	_, last := v.Rows()
	return last
}

// Live returns the number of documents of members that are not deleted.
func Live(members []Member) int {
	n := 0
	for i := range members {
		n += members[i].liveCount()
	}
	return n
}

// Snapshot is the state of a Set after one transaction. It is immutable.
type Snapshot struct {
	// row is the last row number assigned when the transaction ended. Each transaction that changes a document assigns at least
	// one.
	row uint64
	// Parts are the segments to search.
	Parts []evaluate.Part
}

// visibleSnapshots are the snapshots that readers select from. While a transaction is being synced, it can already be read although
// its outcome is unknown: next is then the snapshot that includes it.
type visibleSnapshots struct{ current, next *Snapshot }

// Set is the segments of an index, with non-overlapping rows in ascending order. Loading, Ready and what returns a Snapshot are safe for
// concurrent use; all else belongs to one goroutine, the owner.
type Set struct {
	name    string
	visible atomic.Pointer[visibleSnapshots]
	// ready is closed when the segments of an existing file have been loaded. Until then segments has only newer rows, and
	// pendingDeletes are the rows deleted since.
	ready chan struct{}

	loaded         bool
	row            uint64
	segments       []Member
	pendingDeletes []uint64
	// dropped is set once the index is deleted.
	dropped bool
}

// New returns the Set of the index of a name whose last row number is row. Its segments are loading until Publish.
func New(name string, row uint64) *Set { return &Set{name: name, ready: make(chan struct{}), row: row} }

// Name returns the name of the index.
func (s *Set) Name() string { return s.name }

// Row returns the last row number of the last transaction.
func (s *Set) Row() uint64 { return s.row }

// Dropped reports whether the index is deleted.
func (s *Set) Dropped() bool { return s.dropped }

// Loading reports whether the segments of an existing file are still being loaded.
func (s *Set) Loading() bool { return s.visible.Load() == nil }

// Ready returns a channel that is closed when they have been loaded.
func (s *Set) Ready() <-chan struct{} { return s.ready }

// Update is the change of a Set by a transaction in progress.
type Update struct {
	// Row is the last row number of the transaction.
	Row            uint64
	segments       []Member
	pendingDeletes []uint64
}

// Prepare returns the change by a transaction that ends at row, stores the documents of fresh (nil for none), and rewrites or
// removes the rows removed, which it sorts. logged are those of removed that must be saved for a restart.
func (s *Set) Prepare(row uint64, fresh *segment.Segment, removed []uint64) (p Update, logged []uint64) {
	p = Update{Row: row, segments: slices.Clone(s.segments), pendingDeletes: s.pendingDeletes}
	slices.Sort(removed)
	unknown, logged := markDeleted(p.segments, removed)
	if !s.loaded {
		p.pendingDeletes = append(p.pendingDeletes, unknown...)
		logged = append(logged, unknown...)
		slices.Sort(logged)
	}
	p.segments = slices.DeleteFunc(p.segments, func(v Member) bool { return v.liveCount() == 0 && v.file.number == 0 && !v.merging })
	if fresh != nil && fresh.Documents() > 0 {
		p.segments = append(p.segments, Member{segment: fresh})
	}
	if s.loaded {
		s.visible.Store(&visibleSnapshots{current: s.visible.Load().current, next: p.snapshot()})
	}
	return p, logged
}

func (p *Update) snapshot() *Snapshot {
	parts := make([]evaluate.Part, len(p.segments))
	for i, v := range p.segments {
		parts[i] = evaluate.Part{Segment: v.segment, Deleted: v.deleted}
	}
	return &Snapshot{row: p.Row, Parts: parts}
}

// Finish ends a transaction: it applies the update if done is set, otherwise discards it.
func (s *Set) Finish(p Update, done bool) {
	if done {
		s.row, s.segments, s.pendingDeletes = p.Row, p.segments, p.pendingDeletes
	}
	if !s.loaded {
		return
	}
	now := s.visible.Load()
	if done {
		s.visible.Store(&visibleSnapshots{current: now.next})
	} else {
		s.visible.Store(&visibleSnapshots{current: now.current})
	}
}

// replace replaces the segments by others with the same documents.
func (s *Set) replace(segments []Member) {
	s.segments = segments
	p := Update{Row: s.row, segments: segments}
	s.visible.Store(&visibleSnapshots{current: p.snapshot()})
}

// Publish makes the Set visible to searches, once the segments of the existing file, old, have been loaded.
func (s *Set) Publish(old []Member) {
	slices.Sort(s.pendingDeletes)
	markDeleted(old, s.pendingDeletes)
	s.loaded, s.pendingDeletes = true, nil
	s.replace(append(old, s.segments...))
	close(s.ready)
}

// Current returns the snapshot after the last transaction, nil while segments are being loaded.
func (s *Set) Current() *Snapshot {
	if now := s.visible.Load(); now != nil {
		return now.current
	}
	return nil
}

// CommitPending reports whether the transaction that assigned row is in the file but not visible yet, because its outcome is
// unknown.
func (s *Set) CommitPending(row uint64) bool {
	now := s.visible.Load()
	return now != nil && now.next != nil && now.current.row < row
}

// SnapshotAt returns the snapshot whose last row is row, nil when it has been replaced or is not visible yet.
func (s *Set) SnapshotAt(row uint64) *Snapshot {
	now := s.visible.Load()
	switch {
	case now == nil:
		return nil
	case now.current.row == row:
		return now.current
	case now.next != nil && now.next.row == row:
		return now.next
	default:
		return nil
	}
}

// markDeleted marks the documents of rows, which are sorted, as deleted. unknown are the rows in none of the segments, logged
// those in a segment with a file.
func markDeleted(segments []Member, rows []uint64) (unknown, logged []uint64) {
	for from := 0; from < len(rows); {
		i, _ := slices.BinarySearchFunc(segments, rows[from], func(v Member, row uint64) int { return cmp.Compare(v.last(), row) })
		if i == len(segments) {
			return append(unknown, rows[from:]...), logged
		}
		v := &segments[i]
		to := from + 1
		for to < len(rows) && rows[to] <= v.last() {
			to++
		}
		found, missing := documentsOfRows(v.segment, rows[from:to])
		unknown = append(unknown, missing...)
		if len(found) > 0 {
			v.deleted = withDocuments(v.deleted, found)
			if v.file.number != 0 {
				logged = append(logged, rows[from:to]...)
			}
		}
		from = to
	}
	return unknown, logged
}

// documentsOfRows returns the documents of a segment that have the rows, and the rows that no document has.
func documentsOfRows(s *segment.Segment, rows []uint64) (found []uint32, missing []uint64) {
	numbers := s.Numbers()
	for _, row := range rows {
		if i, ok := slices.BinarySearch(numbers, row); ok {
			found = append(found, uint32(i))
		} else {
			missing = append(missing, row)
		}
	}
	return found, missing
}

// withDocuments returns a new bitmap with more added; snapshots continue to use the old one.
func withDocuments(old *roaring.Bitmap, more []uint32) *roaring.Bitmap {
	all := roaring.New()
	if old != nil {
		all = old.Clone()
	}
	all.AddMany(more)
	return all
}
