package embedded

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/segment"
)

// volume is one segment of an alias with what became of its documents since. The bitmaps are never changed.
type volume struct {
	segment *segment.Segment
	// dead are the documents that were rewritten or removed; nil for none.
	dead *roaring.Bitmap
	// file is where the segment is kept; its number is zero when it is in memory alone.
	file file
	// noted is dead as the manifest has it.
	noted *roaring.Bitmap
	// busy tells that a merge reads it.
	busy bool
}

// live counts the documents that are not dead.
func (v *volume) live() int { return v.segment.Documents() - v.gone() }

func (v *volume) gone() int {
	if v.dead == nil {
		return 0
	}
	return int(v.dead.GetCardinality())
}

// last returns the highest row number. A segment is never empty.
func (v *volume) last() uint64 {
	numbers := v.segment.Numbers()
	return numbers[len(numbers)-1]
}

// snapshot is the documents of an alias as one transaction left them. Nothing of it changes.
type snapshot struct {
	// row is the last row number that was given when the transaction ended: each that changes a document gives at least one.
	row   uint64
	parts []evaluate.Part
}

// shown is what readers choose from: while a transaction is being written to disk there is a moment when it can be read and
// its outcome is not known yet.
type shown struct{ current, next *snapshot }

// shelf is the segments of an alias, disjoint and in the order of their row numbers. All but shown and ready belong to the
// goroutine of commitLoop.
type shelf struct {
	shown atomic.Pointer[shown]
	// ready is closed when the segments of an old file have been loaded; until then volumes are those of newer rows, and missed
	// the rows that died since.
	ready chan struct{}

	loaded  bool
	row     uint64
	volumes []volume
	missed  []uint64
}

func newShelf(row uint64) *shelf { return &shelf{ready: make(chan struct{}), row: row} }

// loading reports whether the segments of an old file are not there yet.
func (s *shelf) loading() bool { return s.shown.Load() == nil }

// proposal is what a transaction in progress will make of a shelf.
type proposal struct {
	row     uint64
	volumes []volume
	missed  []uint64
}

// propose returns what becomes of the shelf by a transaction that ends with a row number, stores the documents of fresh (nil for
// none), and rewrites or removes gone, which it sorts. logged are those of gone that a restart has to be told of.
func (s *shelf) propose(row uint64, fresh *segment.Segment, gone []uint64) (p proposal, logged []uint64) {
	p = proposal{row: row, volumes: slices.Clone(s.volumes), missed: s.missed}
	slices.Sort(gone)
	strangers, logged := kill(p.volumes, gone)
	if !s.loaded {
		p.missed = append(p.missed, strangers...)
		logged = append(logged, strangers...)
		slices.Sort(logged)
	}
	p.volumes = slices.DeleteFunc(p.volumes, func(v volume) bool { return v.live() == 0 && v.file.number == 0 && !v.busy })
	if fresh != nil && fresh.Documents() > 0 {
		p.volumes = append(p.volumes, volume{segment: fresh})
	}
	if s.loaded {
		s.shown.Store(&shown{current: s.shown.Load().current, next: p.snapshot()})
	}
	return p, logged
}

func (p *proposal) snapshot() *snapshot {
	parts := make([]evaluate.Part, len(p.volumes))
	for i, v := range p.volumes {
		parts[i] = evaluate.Part{Segment: v.segment, Deleted: v.dead}
	}
	return &snapshot{row: p.row, parts: parts}
}

// settle ends a transaction: with the proposal, or, when it did not come about, without.
func (s *shelf) settle(p proposal, done bool) {
	if done {
		s.row, s.volumes, s.missed = p.row, p.volumes, p.missed
	}
	if !s.loaded {
		return
	}
	now := s.shown.Load()
	if done {
		s.shown.Store(&shown{current: now.next})
	} else {
		s.shown.Store(&shown{current: now.current})
	}
}

// replace puts other volumes in place, which hold the same documents.
func (s *shelf) replace(volumes []volume) {
	s.volumes = volumes
	p := proposal{row: s.row, volumes: volumes}
	s.shown.Store(&shown{current: p.snapshot()})
}

// open begins to show the shelf, once volumes with what the file held at the start are there.
func (s *shelf) open(old []volume) {
	slices.Sort(s.missed)
	kill(old, s.missed)
	s.loaded, s.missed = true, nil
	s.replace(append(old, s.volumes...))
	close(s.ready)
}

// current returns the documents as the last transaction left them, nil while they are loaded.
func (s *shelf) current() *snapshot {
	if now := s.shown.Load(); now != nil {
		return now.current
	}
	return nil
}

// behind reports whether the transaction that gave row is in the file and not shown yet, because its outcome is not known.
func (s *shelf) behind(row uint64) bool {
	now := s.shown.Load()
	return now != nil && now.next != nil && now.current.row < row
}

// at returns the documents as they were when row was the last number, nil when that has passed or is not shown yet.
func (s *shelf) at(row uint64) *snapshot {
	now := s.shown.Load()
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

// kill marks the documents of rows, which are sorted, as dead. strangers are those that no volume has, logged those of a volume
// that is kept in a file.
func kill(volumes []volume, rows []uint64) (strangers, logged []uint64) {
	for from := 0; from < len(rows); {
		i, _ := slices.BinarySearchFunc(volumes, rows[from], func(v volume, row uint64) int { return cmp.Compare(v.last(), row) })
		if i == len(volumes) {
			return append(strangers, rows[from:]...), logged
		}
		v := &volumes[i]
		to := from + 1
		for to < len(rows) && rows[to] <= v.last() {
			to++
		}
		found, missing := documents(v.segment, rows[from:to])
		strangers = append(strangers, missing...)
		if len(found) > 0 {
			v.dead = with(v.dead, found)
			if v.file.number != 0 {
				logged = append(logged, rows[from:to]...)
			}
		}
		from = to
	}
	return strangers, logged
}

// documents returns the documents of a segment that have the rows, and the rows that none has.
func documents(s *segment.Segment, rows []uint64) (found []uint32, missing []uint64) {
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

// with returns a bitmap of both; snapshots go on reading the old one.
func with(old *roaring.Bitmap, more []uint32) *roaring.Bitmap {
	all := roaring.New()
	if old != nil {
		all = old.Clone()
	}
	all.AddMany(more)
	return all
}
