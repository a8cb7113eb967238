package embedded

import (
	"os"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"

	"tutti/internal/index/embedded/segment"
)

// Merges run concurrently with the committer, at most one in each lane: a lane for short merges, which keeps the number of small segments
// low during fast writing, and one for the rest.
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
	alias   *alias
	sources []aliasSegment
	// useFile is set when the result may be written to a file.
	useFile bool
}

// segmentSwap is a change of a segmentSet that the committer applies for a background goroutine.
type segmentSwap struct {
	alias *alias
	// put, at most one segment, replaces the sources of the merge in lane, unless that has failed. unfiled is set when a file could not
	// be written.
	put             []aliasSegment
	lane            int
	failed, unfiled bool
	// initial is set when put are the segments loaded at the start; fresh are the files of put that are new, removed those that are
	// unused.
	initial        bool
	fresh, removed []uint64
}

// merger merges segments in the background. Its methods but send and runMerge belong to the committer's goroutine.
type merger struct {
	*store
	folder *folder
	swaps  chan *segmentSwap
	// merges are the merges in progress; no segment file is written until filesPausedUntil.
	merges           [mergeLanes]*merge
	filesPausedUntil time.Time
}

// send sends a swap to the committer. It returns false when the index is closed.
func (x *merger) send(s *segmentSwap) bool {
	select {
	case x.swaps <- s:
		return true
	case <-x.stop:
		return false
	}
}

// start starts the merges that are due, in free lanes.
func (x *merger) start() {
	if x.merges[smallLane] != nil && x.merges[bigLane] != nil {
		return
	}
	for _, a := range x.allAliases() {
		if !a.segments.loaded || len(a.segments.segments) == 0 {
			continue
		}
		for x.startNext(a) {
		}
	}
}

// startNext starts the most urgent merge of an alias whose lane is free, and reports whether there was one.
func (x *merger) startNext(a *alias) bool {
	for r := range chooseMerges(statsOf(a.segments.segments), x.filesEnabled()) {
		if x.startMerge(a, r) {
			return true
		}
	}
	return false
}

// filesEnabled reports whether segment files are written.
func (x *merger) filesEnabled() bool {
	return x.filesPausedUntil.IsZero() || time.Now().After(x.filesPausedUntil)
}

// startMerge starts one merge, unless its lane is busy.
func (x *merger) startMerge(a *alias, r run) bool {
	lane := smallLane
	if r.documents > smallMerge {
		lane = bigLane
	}
	segments := a.segments.segments[r.from:r.to]
	m := &merge{alias: a, useFile: x.filesEnabled()}
	if x.merges[lane] != nil || !m.useFile && len(filesOf(segments)) > 0 {
		return false
	}
	for i := range segments {
		segments[i].merging = true
		m.sources = append(m.sources, segments[i])
	}
	x.merges[lane] = m
	x.work.Go(func() {
		s := &segmentSwap{alias: a, lane: lane}
		x.runMerge(m, s)
		x.send(s)
	})
	return true
}

// runMerge sets what a merge returns: one segment, none when all documents are deleted. If its file cannot be written, the segment is
// only in memory, or, when it would replace files, the merge has failed.
func (x *merger) runMerge(m *merge, s *segmentSwap) {
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
	if m.useFile && live >= minFileDocuments && !x.closing() {
		v, err := x.folder.write(func(to *os.File) error { return segment.MergeTo(to, parts, deleted) })
		if err == nil {
			s.put = []aliasSegment{v}
			return
		}
		x.cfg.Logger.Warn("embedded index could not write a segment file; the next start will take longer", "err", err)
		s.unfiled, s.failed = true, len(filesOf(m.sources)) > 0
	}
	if !s.failed {
		s.put = []aliasSegment{{segment: segment.Merge(parts, deleted)}}
	}
}

// closing reports whether Close has started.
func (x *merger) closing() bool {
	select {
	case <-x.closeStarted:
		return true
	default:
		return false
	}
}

// backlogged reports whether writes have to wait for the small lane.
func (x *merger) backlogged() bool {
	m := x.merges[smallLane]
	if m == nil {
		return false
	}
	if len(m.alias.segments.segments) >= backlogSegments {
		return true
	}
	waiting := 0
	for i := range m.alias.segments.segments {
		if m.alias.segments.segments[i].file.number == 0 {
			waiting += counted(m.alias.segments.segments[i].segment)
		}
	}
	return waiting >= backlogDocuments && x.filesEnabled()
}

// swap applies a swap.
func (x *merger) swap(s *segmentSwap) {
	if s.initial {
		x.publishLoaded(s)
		return
	}
	m := x.merges[s.lane]
	x.merges[s.lane] = nil
	if s.alias.dropped {
		x.removeFiles(append(filesOf(s.put), filesOf(m.sources)...))
		return
	}
	set := s.alias.segments
	at := slices.IndexFunc(set.segments, func(v aliasSegment) bool { return v.segment == m.sources[0].segment })
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
		if err := x.checkpoint(s.alias, next, removed); err != nil {
			x.cfg.Logger.Warn("embedded index could not update its manifest of segment files", "index", s.alias.name, "err", err)
			x.filesPausedUntil = time.Now().Add(filePause)
			x.abortSwap(s, now)
			return
		}
	}
	set.replace(next)
	x.removeFiles(removed)
}

func filesOf(segments []aliasSegment) []uint64 {
	var numbers []uint64
	for i := range segments {
		if n := segments[i].file.number; n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (x *merger) removeFiles(numbers []uint64) {
	for _, n := range numbers {
		x.folder.remove(n)
	}
}

// abortSwap restores the state before a merge.
func (x *merger) abortSwap(s *segmentSwap, now []aliasSegment) {
	for i := range now {
		now[i].merging = false
	}
	x.removeFiles(filesOf(s.put))
}

// carryDeletes marks documents as deleted that were deleted from the sources during the merge.
func carryDeletes(s *segmentSwap, m *merge, now []aliasSegment) {
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

// publishLoaded makes an alias whose segments have been loaded searchable.
func (x *merger) publishLoaded(s *segmentSwap) {
	set := s.alias.segments
	set.publish(s.put)
	if len(s.fresh) == 0 && len(s.removed) == 0 {
		return
	}
	if err := x.checkpoint(s.alias, set.segments, s.removed); err != nil {
		x.cfg.Logger.Warn("embedded index could not update its manifest of segment files", "index", s.alias.name, "err", err)
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

// checkpoint saves the manifest of segments.
func (x *merger) checkpoint(a *alias, segments []aliasSegment, removed []uint64) error {
	err := x.update(0, func(tx *bbolt.Tx) error { return checkpoint(aliasBucket(tx, a.name), segments, removed) })
	if err != nil {
		return err
	}
	for i := range segments {
		segments[i].savedDeleted = segments[i].deleted
	}
	return nil
}
