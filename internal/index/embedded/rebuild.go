package embedded

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"tutti/internal/index/embedded/segment"
)

const (
	// maxRebuiltSegment is the number of documents of a rebuilt segment, minRebuildTask the minimum number for a goroutine.
	maxRebuiltSegment = 65_536
	minRebuildTask    = 2_048
	// rebuildPage is the number of sources copied by one read transaction.
	rebuildPage = 512
	// progressInterval is how often the progress of a rebuild is logged.
	progressInterval = 5 * time.Second
)

// workers returns the number of goroutines that load and rebuild.
func workers() int { return runtime.GOMAXPROCS(0) }

// rebuild builds segments of the documents whose row numbers are in gaps. ok is false when the index was closed.
func (x *Index) rebuild(l *aliasLoad, gaps []rowRange) (segments []aliasSegment, ok bool) {
	tell := &progress{index: x, name: l.alias.name, logged: time.Now()}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(workers())
	for _, s := range l.split(gaps) {
		group.Go(func() error {
			made, err := x.rebuildRange(l.alias, s, tell)
			mu.Lock()
			defer mu.Unlock()
			segments = append(segments, made...)
			return err
		})
	}
	return segments, group.Wait() == nil
}

// split divides gaps into ranges of about maxRebuiltSegment documents, or into one per worker when there are few documents.
func (l *aliasLoad) split(gaps []rowRange) []rowRange {
	total := uint64(0)
	for _, g := range gaps {
		total += g.last - g.first + 1
	}
	// When documents are rewritten often, most row numbers are unused.
	dense := 1.0
	if l.row > 0 {
		dense = max(float64(l.live)/float64(l.row), 0.01)
	}
	step := min(max(total/uint64(workers())+1, minRebuildTask), uint64(maxRebuiltSegment/dense))
	var pieces []rowRange
	for _, g := range gaps {
		for first := g.first; first <= g.last; first += step {
			pieces = append(pieces, rowRange{first, min(first+step-1, g.last)})
		}
	}
	return pieces
}

// rebuildRange builds segments of the documents in one range. An error means that the index is closed.
func (x *Index) rebuildRange(a *alias, s rowRange, tell *progress) (segments []aliasSegment, err error) {
	var builder *segment.Builder
	built := 0
	finish := func() {
		if built > 0 {
			segments = append(segments, x.persist(builder.Segment()))
		}
		builder, built = nil, 0
	}
	var doc []byte
	for page := (&rowPage{}); !page.ended; {
		if err := x.readPage(a.name, &s, page); err != nil {
			return segments, err
		}
		if builder == nil {
			builder = segment.NewBuilder(a.tree.Load())
		}
		for _, r := range page.rows {
			id, _, err := splitRow(r.row)
			if err == nil {
				if doc, err = appendSource(doc[:0], r.row); err == nil {
					err = builder.Add(r.number, string(id), doc)
				}
			}
			if err != nil {
				x.logUnsearchable(a, string(id), err)
				continue
			}
			built++
		}
		tell.add(len(page.rows))
		if built >= maxRebuiltSegment {
			finish()
		}
	}
	finish()
	return segments, nil
}

// logUnsearchable logs a document that searches do not find because its source is corrupt.
func (x *Index) logUnsearchable(a *alias, id string, err error) {
	x.cfg.Logger.Error("embedded index cannot search a document", "index", a.name, "record_id", id, "err", err)
}

// persist returns the entry of a segment, written to a file when it is large enough.
func (x *Index) persist(s *segment.Segment) aliasSegment {
	v := aliasSegment{segment: s}
	if s.Documents() < minFileDocuments {
		return v
	}
	kept, err := x.folder.write(s)
	if err != nil {
		x.cfg.Logger.Warn("embedded index could not write a segment file; the next start will take longer", "err", err)
		return v
	}
	v.file = kept
	return v
}

// rowPage is a copy of some rows.
type rowPage struct {
	rows  []numbered
	arena []byte
	ended bool
}

type numbered struct {
	number uint64
	row    []byte
}

// readPage copies the next rows of a range in one short transaction, and moves the start of the range after them.
func (x *Index) readPage(name string, s *rowRange, page *rowPage) error {
	page.rows, page.arena, page.ended = page.rows[:0], page.arena[:0], true
	return x.view(name, func(_ *alias, b *bbolt.Bucket) error {
		c := b.Bucket(bucketRows()).Cursor()
		for key, row := c.Seek(rowKeyOf(s.first)); len(key) == rowKey; key, row = c.Next() {
			number := binary.BigEndian.Uint64(key)
			if number > s.last {
				return nil
			}
			if len(page.rows) == rebuildPage {
				s.first, page.ended = number, false
				return nil
			}
			start := len(page.arena)
			page.arena = append(page.arena, row...)
			page.rows = append(page.rows, numbered{number: number, row: slices.Clip(page.arena[start:])})
		}
		return nil
	})
}

// progress logs how many documents a rebuild has read.
type progress struct {
	index *Index
	name  string

	mu     sync.Mutex
	done   int
	logged time.Time
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if time.Since(p.logged) < progressInterval {
		return
	}
	p.logged = time.Now()
	p.index.cfg.Logger.Info("embedded index is rebuilding its columns from the documents", "index", p.name, "done", p.done)
}
