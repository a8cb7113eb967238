package embedded

import (
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.etcd.io/bbolt"

	"tutti/internal/index/embedded/segment"
)

// Merges run beside commitLoop, one in each lane: one for what takes moments, so that the many small segments of fast writing
// are few again soon, and one for the rest.
const (
	smallLane = iota
	bigLane
	mergeLanes
)

const (
	// smallMerge is how many documents the small lane takes.
	smallMerge = 65_536
	// crowdedSegments and crowdedDocuments are from how many segments, and documents in memory alone, writes wait for the small
	// lane.
	crowdedSegments  = 48
	crowdedDocuments = 40_000
	// restAfterFailure is how long no file is tried after one that could not be written.
	restAfterFailure = 30 * time.Second
)

// merge is neighbours of a shelf that are becoming one, as they were when it began.
type merge struct {
	alias *alias
	took  []volume
	// files reports whether a file is tried.
	files bool
}

// swap is what commitLoop does to a shelf for those who work beside it.
type swap struct {
	alias *alias
	// put, one volume or none, takes the place of what the merge of the lane took.
	put  []volume
	lane int
	// opens tells that put is what the file held at the start; fresh are the files of put that were made since, removed those of
	// no use.
	opens          bool
	fresh, removed []uint64
}

// deliver hands a swap to commitLoop; false when the index is closed.
func (x *Index) deliver(s *swap) bool {
	select {
	case x.swaps <- s:
		return true
	case <-x.stop:
		return false
	}
}

// tidy begins the merges that are due, where their lanes are free.
func (x *Index) tidy() {
	if x.merges[smallLane] != nil && x.merges[bigLane] != nil {
		return
	}
	for _, a := range x.all() {
		if !a.shelf.loaded || len(a.shelf.volumes) == 0 {
			continue
		}
		for x.beginAny(a) {
		}
	}
}

// beginAny begins the most urgent merge of an alias whose lane is free, and reports whether there was one.
func (x *Index) beginAny(a *alias) bool {
	for r := range choose(weigh(a.shelf.volumes), x.files()) {
		if x.beginMerge(a, r) {
			return true
		}
	}
	return false
}

// files reports whether files are tried.
func (x *Index) files() bool { return x.rest.IsZero() || time.Now().After(x.rest) }

func (x *Index) all() []*alias {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]*alias, 0, len(x.aliases))
	for _, a := range x.aliases {
		all = append(all, a)
	}
	return all
}

// beginMerge begins one merge, unless its lane is taken.
func (x *Index) beginMerge(a *alias, r run) bool {
	lane := smallLane
	if r.documents > smallMerge {
		lane = bigLane
	}
	volumes := a.shelf.volumes[r.from:r.to]
	m := &merge{alias: a, files: x.files()}
	if x.merges[lane] != nil || !m.files && len(filesOf(volumes)) > 0 {
		return false
	}
	for i := range volumes {
		volumes[i].busy = true
		m.took = append(m.took, volumes[i])
	}
	x.merges[lane] = m
	x.work.Go(func() { x.deliver(&swap{alias: a, put: x.merged(m), lane: lane}) })
	return true
}

// merged returns the volume of a merge, none when all documents are dead.
func (x *Index) merged(m *merge) []volume {
	parts, dead := make([]*segment.Segment, len(m.took)), make([]*roaring.Bitmap, len(m.took))
	for i, v := range m.took {
		parts[i], dead[i] = v.segment, v.dead
	}
	s := segment.Merge(parts, dead)
	if s.Documents() == 0 {
		return nil
	}
	if !m.files {
		return []volume{{segment: s}}
	}
	select {
	case <-x.ending:
		return []volume{{segment: s}}
	default:
		return []volume{x.shelved(s)}
	}
}

// crowded tells that writes have to wait for the small lane.
func (x *Index) crowded() bool {
	m := x.merges[smallLane]
	if m == nil {
		return false
	}
	if len(m.alias.shelf.volumes) >= crowdedSegments {
		return true
	}
	waiting := 0
	for i := range m.alias.shelf.volumes {
		if m.alias.shelf.volumes[i].file.number == 0 {
			waiting += m.alias.shelf.volumes[i].segment.Documents()
		}
	}
	return waiting >= crowdedDocuments && x.files()
}

// swap puts what was made beside commitLoop in its place.
func (x *Index) swap(s *swap) {
	if s.opens {
		x.open(s)
		return
	}
	m := x.merges[s.lane]
	x.merges[s.lane] = nil
	shelf := s.alias.shelf
	at := slices.IndexFunc(shelf.volumes, func(v volume) bool { return v.segment == m.took[0].segment })
	now := shelf.volumes[at : at+len(m.took)]
	carry(s, m, now)
	filed, removed := len(s.put) > 0 && s.put[0].file.number != 0, filesOf(m.took)
	if len(s.put) > 0 && !filed && s.put[0].segment.Documents() >= fileLeast {
		x.rest = time.Now().Add(restAfterFailure)
		if len(removed) > 0 {
			// The files that it would take the place of are those of a restart: what dies in them must still be noted.
			x.giveUp(s, now)
			return
		}
	}
	next := slices.Concat(shelf.volumes[:at], s.put, shelf.volumes[at+len(m.took):])
	if filed || len(removed) > 0 {
		if err := x.checkpoint(s.alias, next, removed); err != nil {
			x.cfg.Logger.Warn("embedded index could not list a segment's file", "index", s.alias.name, "err", err)
			x.rest = time.Now().Add(restAfterFailure)
			x.giveUp(s, now)
			return
		}
	}
	shelf.replace(next)
	x.removeFiles(removed)
}

func filesOf(volumes []volume) []uint64 {
	var numbers []uint64
	for i := range volumes {
		if n := volumes[i].file.number; n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (x *Index) removeFiles(numbers []uint64) {
	for _, n := range numbers {
		x.folder.remove(n)
	}
}

// giveUp leaves everything as it was before a merge.
func (x *Index) giveUp(s *swap, now []volume) {
	for i := range now {
		now[i].busy = false
	}
	x.removeFiles(filesOf(s.put))
}

// carry marks in the merged volume what died in its parts while it was made.
func carry(s *swap, m *merge, now []volume) {
	if len(s.put) == 0 {
		return
	}
	var rows []uint64
	for i := range now {
		if now[i].dead == m.took[i].dead {
			continue
		}
		died := now[i].dead
		if m.took[i].dead != nil {
			died = roaring.AndNot(died, m.took[i].dead)
		}
		numbers := now[i].segment.Numbers()
		died.Iterate(func(document uint32) bool {
			rows = append(rows, numbers[document])
			return true
		})
	}
	kill(s.put, rows)
}

// open shows an alias whose segments have been loaded.
func (x *Index) open(s *swap) {
	shelf := s.alias.shelf
	shelf.open(s.put)
	if len(s.fresh) == 0 && len(s.removed) == 0 {
		return
	}
	if err := x.checkpoint(s.alias, shelf.volumes, s.removed); err != nil {
		x.cfg.Logger.Warn("embedded index could not list a segment's file", "index", s.alias.name, "err", err)
		for i := range shelf.volumes {
			if slices.Contains(s.fresh, shelf.volumes[i].file.number) {
				shelf.volumes[i].file = file{}
			}
		}
		x.removeFiles(s.fresh)
		return
	}
	x.removeFiles(s.removed)
}

// checkpoint writes the manifest of volumes, and notes in them that it did.
func (x *Index) checkpoint(a *alias, volumes []volume, removed []uint64) error {
	err := x.update(0, func(tx *bbolt.Tx) error { return checkpoint(aliasBucket(tx, a.name), volumes, removed) })
	if err != nil {
		return err
	}
	for i := range volumes {
		volumes[i].noted = volumes[i].dead
	}
	return nil
}
