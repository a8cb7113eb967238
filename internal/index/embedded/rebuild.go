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
	// rebuildMost is how many documents a segment gets that is made of sources, rebuildLeast what is worth a worker.
	rebuildMost  = 65_536
	rebuildLeast = 2_048
	// rebuildPage is how many sources one read transaction copies.
	rebuildPage = 512
	// rebuildTells is how often a long rebuild is told.
	rebuildTells = 5 * time.Second
)

// workers is how many goroutines load and rebuild.
func workers() int { return runtime.GOMAXPROCS(0) }

// rebuild makes segments of the documents whose row numbers are in gaps. ok is false when the index is closed meanwhile.
func (x *Index) rebuild(l *load, gaps []span) (volumes []volume, ok bool) {
	tell := &progress{index: x, name: l.alias.name, told: time.Now()}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(workers())
	for _, s := range l.split(gaps) {
		group.Go(func() error {
			made, err := x.rebuildSpan(l.alias, s, tell)
			mu.Lock()
			defer mu.Unlock()
			volumes = append(volumes, made...)
			return err
		})
	}
	return volumes, group.Wait() == nil
}

// split cuts gaps into pieces of about rebuildMost documents, or as many pieces as there are workers when there are few.
func (l *load) split(gaps []span) []span {
	total := uint64(0)
	for _, g := range gaps {
		total += g.last - g.first + 1
	}
	// Where documents are written again and again, most numbers are no document's any more.
	dense := 1.0
	if l.row > 0 {
		dense = max(float64(l.live)/float64(l.row), 0.01)
	}
	step := min(max(total/uint64(workers())+1, rebuildLeast), uint64(rebuildMost/dense))
	var pieces []span
	for _, g := range gaps {
		for first := g.first; first <= g.last; first += step {
			pieces = append(pieces, span{first, min(first+step-1, g.last)})
		}
	}
	return pieces
}

// rebuildSpan makes segments of the documents of one span. An error means that the index is closed.
func (x *Index) rebuildSpan(a *alias, s span, tell *progress) (volumes []volume, err error) {
	var builder *segment.Builder
	built := 0
	finish := func() {
		if built > 0 {
			volumes = append(volumes, x.shelved(builder.Segment()))
		}
		builder, built = nil, 0
	}
	var doc []byte
	for page := (&rowPage{}); !page.ended; {
		if err := x.readPage(a.name, &s, page); err != nil {
			return volumes, err
		}
		if builder == nil {
			builder = segment.NewBuilder(a.tree.Load())
		}
		for _, r := range page.rows {
			id, _, err := openRow(r.row)
			if err == nil {
				if doc, err = appendSource(doc[:0], r.row); err == nil {
					err = builder.Add(r.number, string(id), doc)
				}
			}
			if err != nil {
				x.leftOut(a, string(id), err)
				continue
			}
			built++
		}
		tell.add(len(page.rows))
		if built >= rebuildMost {
			finish()
		}
	}
	finish()
	return volumes, nil
}

// leftOut tells of a document that searches do not find: its source in the file is spoilt.
func (x *Index) leftOut(a *alias, id string, err error) {
	x.cfg.Logger.Error("embedded index cannot search a document", "index", a.name, "record_id", id, "err", err)
}

// shelved returns a segment as a volume, in a file when it is big enough to be worth one.
func (x *Index) shelved(s *segment.Segment) volume {
	v := volume{segment: s}
	if s.Documents() < fileLeast {
		return v
	}
	kept, err := x.folder.write(s)
	if err != nil {
		x.cfg.Logger.Warn("embedded index could not keep its columns in a file; the next start will take longer", "err", err)
		return v
	}
	v.file = kept
	return v
}

// rowPage is some rows, copied.
type rowPage struct {
	rows  []numbered
	arena []byte
	ended bool
}

type numbered struct {
	number uint64
	row    []byte
}

// readPage reads the next rows of a span in one short transaction, and moves its start behind them.
func (x *Index) readPage(name string, s *span, page *rowPage) error {
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

// progress tells how far a rebuild has come.
type progress struct {
	index *Index
	name  string

	mu   sync.Mutex
	done int
	told time.Time
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if time.Since(p.told) < rebuildTells {
		return
	}
	p.told = time.Now()
	p.index.cfg.Logger.Info("embedded index is making its columns of the documents", "index", p.name, "done", p.done)
}
