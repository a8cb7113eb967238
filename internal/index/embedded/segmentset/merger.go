package segmentset

import (
	"cmp"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/base/order"
	"tutti/internal/index/embedded/segment"
)

// Merges run concurrently with the owner of the Sets, at most one in each lane: a lane for short merges, which keeps the number of
// small segments low during fast writing, and one for the rest.
const (
	smallLane = iota
	bigLane
	mergeLanes
)

const (
	// smallMerge is the maximum number of documents of a merge in the small lane.
	smallMerge = 65_536
	// backlogSegments and backlogDocuments are the numbers of segments, and of documents only in memory, from which writes wait for
	// the small lane.
	backlogSegments  = 48
	backlogDocuments = 40_000
	// filePause is how long no file is written after one that failed.
	filePause = 30 * time.Second
)

// merge is a merge of adjacent segments in progress. sources are the segments when it started.
type merge struct {
	set     *Set
	sources []Member
	// useFile is set when the result may be written to a file.
	useFile bool
}

// Swap is a change of a Set that its owner applies for a background goroutine.
type Swap struct {
	set *Set
	// put, at most one segment, replaces the sources of the merge in lane, unless that has failed. unfiled is set when a file could not
	// be written.
	put             []Member
	lane            int
	failed, unfiled bool
	// initial is set when put are the segments loaded at the start; fresh are the files of put that are new, removed those that are
	// unused.
	initial        bool
	fresh, removed []uint64
}

// Loaded returns the Swap with which a Set gets the segments that a file had when it was opened: read are those of files, made are those
// that were rebuilt. spoilt are the numbers of the files that cannot be used.
func Loaded(set *Set, read, made []Member, spoilt []uint64) *Swap {
	all := slices.Concat(read, made)
	order.Sort(all, func(a, b Member) int { return cmp.Compare(a.last(), b.last()) })
	return &Swap{set: set, initial: true, put: all, fresh: filesOf(made), removed: spoilt}
}

// Owner is what a Merger needs of the index whose segments it merges.
type Owner interface {
	// Sets returns the Sets of all indices.
	Sets() []*Set
	// Save saves in the manifest of a Set that members are its segments, and that the files removed are not. It logs why it could not.
	Save(set *Set, members []Member, removed []uint64) (saved bool)
	// Background runs merge in a goroutine. What it returns must be passed to Apply, by the goroutine that owns the Sets, unless that ends.
	Background(merge func() *Swap)
	// Closing reports whether the index is being closed, when a merge no longer writes a file.
	Closing() bool
}

// Merger merges segments in the background. Its methods belong to the goroutine that owns the Sets.
type Merger struct {
	owner  Owner
	folder *Folder
	logger *slog.Logger
	// merges are the merges in progress; no segment file is written until filesPausedUntil.
	merges           [mergeLanes]*merge
	filesPausedUntil time.Time
}

// NewMerger returns a Merger of the Sets of owner that writes its files to folder.
func NewMerger(owner Owner, folder *Folder, logger *slog.Logger) *Merger {
	return &Merger{owner: owner, folder: folder, logger: logger}
}

// Start starts the merges that are due, in free lanes.
func (x *Merger) Start() {
	if x.merges[smallLane] != nil && x.merges[bigLane] != nil {
		return
	}
	for _, set := range x.owner.Sets() {
		if !set.loaded || len(set.segments) == 0 {
			continue
		}
		for x.startNext(set) {
		}
	}
}

// startNext starts the most urgent merge of a Set whose lane is free, and reports whether there was one.
func (x *Merger) startNext(set *Set) bool {
	for r := range chooseMerges(statsOf(set.segments), x.filesEnabled()) {
		if x.startMerge(set, r) {
			return true
		}
	}
	return false
}

// filesEnabled reports whether segment files are written.
func (x *Merger) filesEnabled() bool {
	return x.filesPausedUntil.IsZero() || time.Now().After(x.filesPausedUntil)
}

// startMerge starts one merge, unless its lane is busy.
func (x *Merger) startMerge(set *Set, r run) bool {
	lane := smallLane
	if r.documents > smallMerge {
		lane = bigLane
	}
	segments := set.segments[r.from:r.to]
	m := &merge{set: set, useFile: x.filesEnabled()}
	if x.merges[lane] != nil || !m.useFile && len(filesOf(segments)) > 0 {
		return false
	}
	for i := range segments {
		segments[i].merging = true
		m.sources = append(m.sources, segments[i])
	}
	x.merges[lane] = m
	x.owner.Background(func() *Swap {
		s := &Swap{set: set, lane: lane}
		x.runMerge(m, s)
		return s
	})
	return true
}

// runMerge sets what a merge returns: one segment, none when all documents are deleted. If its file cannot be written, the segment is
// only in memory, or, when it would replace files, the merge has failed.
func (x *Merger) runMerge(m *merge, s *Swap) {
	parts, deleted := make([]*segment.Segment, len(m.sources)), make([]*roaring.Bitmap, len(m.sources))
	live, documents := 0, 0
	for i, v := range m.sources {
		parts[i], deleted[i] = v.segment, v.deleted
		documents += v.liveCount()
		live += countedTimes(v.segment) * v.liveCount()
	}
	if documents == 0 {
		return
	}
	if m.useFile && live >= minFileDocuments && !x.owner.Closing() {
		v, err := x.folder.write(func(to *os.File) error { return segment.MergeTo(to, parts, deleted) })
		if err == nil {
			s.put = []Member{v}
			return
		}
		x.logger.Warn("embedded index could not write a segment file; the next start will take longer", "err", err)
		s.unfiled, s.failed = true, len(filesOf(m.sources)) > 0
	}
	if !s.failed {
		s.put = []Member{{segment: segment.Merge(parts, deleted)}}
	}
}

// Backlogged reports whether writes have to wait for the small lane.
func (x *Merger) Backlogged() bool {
	m := x.merges[smallLane]
	if m == nil {
		return false
	}
	if len(m.set.segments) >= backlogSegments {
		return true
	}
	waiting := 0
	for i := range m.set.segments {
		if m.set.segments[i].file.number == 0 {
			waiting += counted(m.set.segments[i].segment)
		}
	}
	return waiting >= backlogDocuments && x.filesEnabled()
}

// Apply applies a Swap.
func (x *Merger) Apply(s *Swap) {
	if s.initial {
		x.publishLoaded(s)
		return
	}
	m, set := x.merges[s.lane], s.set
	x.merges[s.lane] = nil
	if set.dropped {
		x.removeFiles(append(filesOf(s.put), filesOf(m.sources)...))
		return
	}
	at := slices.IndexFunc(set.segments, func(v Member) bool { return v.segment == m.sources[0].segment })
	now := set.segments[at : at+len(m.sources)]
	carryDeletes(s, m, now)
	filed, removed := len(filesOf(s.put)) > 0, filesOf(m.sources)
	if s.unfiled {
		x.filesPausedUntil = time.Now().Add(filePause)
	}
	if s.failed {
		x.abortSwap(s, now)
		return
	}
	next := slices.Concat(set.segments[:at], s.put, set.segments[at+len(m.sources):])
	if filed || len(removed) > 0 {
		if !x.save(set, next, removed) {
			x.filesPausedUntil = time.Now().Add(filePause)
			x.abortSwap(s, now)
			return
		}
	}
	set.replace(next)
	x.removeFiles(removed)
}

func filesOf(segments []Member) []uint64 {
	var numbers []uint64
	for i := range segments {
		if n := segments[i].file.number; n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (x *Merger) removeFiles(numbers []uint64) {
	for _, n := range numbers {
		x.folder.remove(n)
	}
}

// abortSwap restores the state before a merge.
func (x *Merger) abortSwap(s *Swap, now []Member) {
	for i := range now {
		now[i].merging = false
	}
	x.removeFiles(filesOf(s.put))
}

// carryDeletes marks documents as deleted that were deleted from the sources during the merge.
func carryDeletes(s *Swap, m *merge, now []Member) {
	if len(s.put) == 0 {
		return
	}
	var rows []uint64
	for i := range now {
		if now[i].deleted == m.sources[i].deleted {
			continue
		}
		died := now[i].deleted
		if m.sources[i].deleted != nil {
			died = roaring.AndNot(died, m.sources[i].deleted)
		}
		numbers := now[i].segment.Numbers()
		died.Iterate(func(document uint32) bool {
			rows = append(rows, numbers[document])
			return true
		})
	}
	markDeleted(s.put, rows)
}

// publishLoaded makes a Set whose segments have been loaded searchable.
func (x *Merger) publishLoaded(s *Swap) {
	set := s.set
	set.Publish(s.put)
	if len(s.fresh) == 0 && len(s.removed) == 0 {
		return
	}
	if !x.save(set, set.segments, s.removed) {
		for i := range set.segments {
			if slices.Contains(s.fresh, set.segments[i].file.number) {
				set.segments[i].file = file{}
			}
		}
		x.removeFiles(s.fresh)
		return
	}
	x.removeFiles(s.removed)
}

// save saves the manifest of members.
func (x *Merger) save(set *Set, members []Member, removed []uint64) bool {
	if !x.owner.Save(set, members, removed) {
		return false
	}
	for i := range members {
		members[i].savedDeleted = members[i].deleted
	}
	return true
}

// Drop ends the use of a Set whose index is deleted, and removes its files. Those of a merge in progress are removed when it ends.
func (x *Merger) Drop(set *Set) {
	set.dropped = true
	for i := range set.segments {
		if !set.segments[i].merging {
			x.removeFiles(filesOf(set.segments[i : i+1]))
		}
	}
}
