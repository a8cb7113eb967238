package embedded

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
)

// aliasSegment is one segment of an alias and its deletions. The bitmaps are immutable.
type aliasSegment struct {
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
func (v *aliasSegment) liveCount() int { return v.segment.Documents() - v.deletedCount() }

func (v *aliasSegment) deletedCount() int {
	if v.deleted == nil {
		return 0
	}
	return int(v.deleted.GetCardinality())
}

// last returns the highest row number. A segment is never empty.
func (v *aliasSegment) last() uint64 {
	numbers := v.segment.Numbers()
	return numbers[len(numbers)-1]
}

// snapshot is the state of an alias after one transaction. It is immutable.
type snapshot struct {
	// row is the last row number assigned when the transaction ended. Each transaction that changes a document assigns at least
	// one.
	row   uint64
	parts []evaluate.Part
}

// visibleSnapshots are the snapshots that readers select from. While a transaction is being synced, it can already be read although
// its outcome is unknown: next is then the snapshot that includes it.
type visibleSnapshots struct{ current, next *snapshot }

// segmentSet is the segments of an alias, with non-overlapping rows in ascending order. All fields but visible and ready belong to
// the committer's goroutine.
type segmentSet struct {
	visible atomic.Pointer[visibleSnapshots]
	// ready is closed when the segments of an existing file have been loaded. Until then segments has only newer rows, and
	// pendingDeletes are the rows deleted since.
	ready chan struct{}

	loaded         bool
	row            uint64
	segments       []aliasSegment
	pendingDeletes []uint64
}

func newSegmentSet(row uint64) *segmentSet { return &segmentSet{ready: make(chan struct{}), row: row} }

// loading reports whether the segments of an existing file are still being loaded.
func (s *segmentSet) loading() bool { return s.visible.Load() == nil }

// segmentUpdate is the change of a segmentSet by a transaction in progress.
type segmentUpdate struct {
	row            uint64
	segments       []aliasSegment
	pendingDeletes []uint64
}

// prepare returns the change by a transaction that ends at row, stores the documents of fresh (nil for none), and rewrites or
// removes the rows removed, which it sorts. logged are those of removed that must be saved for a restart.
func (s *segmentSet) prepare(row uint64, fresh *segment.Segment, removed []uint64) (p segmentUpdate, logged []uint64) {
	p = segmentUpdate{row: row, segments: slices.Clone(s.segments), pendingDeletes: s.pendingDeletes}
	slices.Sort(removed)
	unknown, logged := markDeleted(p.segments, removed)
	if !s.loaded {
		p.pendingDeletes = append(p.pendingDeletes, unknown...)
		logged = append(logged, unknown...)
		slices.Sort(logged)
	}
	p.segments = slices.DeleteFunc(p.segments, func(v aliasSegment) bool { return v.liveCount() == 0 && v.file.number == 0 && !v.merging })
	if fresh != nil && fresh.Documents() > 0 {
		p.segments = append(p.segments, aliasSegment{segment: fresh})
	}
	if s.loaded {
		s.visible.Store(&visibleSnapshots{current: s.visible.Load().current, next: p.snapshot()})
	}
	return p, logged
}

func (p *segmentUpdate) snapshot() *snapshot {
	parts := make([]evaluate.Part, len(p.segments))
	for i, v := range p.segments {
		parts[i] = evaluate.Part{Segment: v.segment, Deleted: v.deleted}
	}
	return &snapshot{row: p.row, parts: parts}
}

// finish ends a transaction: it applies the update if done is set, otherwise discards it.
func (s *segmentSet) finish(p segmentUpdate, done bool) {
	if done {
		s.row, s.segments, s.pendingDeletes = p.row, p.segments, p.pendingDeletes
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
func (s *segmentSet) replace(segments []aliasSegment) {
	s.segments = segments
	p := segmentUpdate{row: s.row, segments: segments}
	s.visible.Store(&visibleSnapshots{current: p.snapshot()})
}

// publish makes the set visible to searches, once the segments of the existing file, old, have been loaded.
func (s *segmentSet) publish(old []aliasSegment) {
	slices.Sort(s.pendingDeletes)
	markDeleted(old, s.pendingDeletes)
	s.loaded, s.pendingDeletes = true, nil
	s.replace(append(old, s.segments...))
	close(s.ready)
}

// current returns the snapshot after the last transaction, nil while segments are being loaded.
func (s *segmentSet) current() *snapshot {
	if now := s.visible.Load(); now != nil {
		return now.current
	}
	return nil
}

// commitPending reports whether the transaction that assigned row is in the file but not visible yet, because its outcome is
// unknown.
func (s *segmentSet) commitPending(row uint64) bool {
	now := s.visible.Load()
	return now != nil && now.next != nil && now.current.row < row
}

// snapshotAt returns the snapshot whose last row is row, nil when it has been replaced or is not visible yet.
func (s *segmentSet) snapshotAt(row uint64) *snapshot {
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
func markDeleted(segments []aliasSegment, rows []uint64) (unknown, logged []uint64) {
	for from := 0; from < len(rows); {
		i, _ := slices.BinarySearchFunc(segments, rows[from], func(v aliasSegment, row uint64) int { return cmp.Compare(v.last(), row) })
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
