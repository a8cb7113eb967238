package indexfile

import (
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"tutti/internal/index/embedded/segmentset"
)

// loader loads the segments of aliases after a start.
type loader struct{ *File }

// slowLoad is the number of documents from which rebuilding segments is logged.
const slowLoad = 50_000

// run loads the segments of each alias, and rebuilds those without a file from the sources. Searches wait for the segments
// of their alias, writes do not.
func (x *loader) run(loads []*aliasLoad) {
	for _, l := range loads {
		began := time.Now()
		segments, spoilt := x.folder.Load(l.alias.Name(), l.alias.Tree, l.manifest, l.deletes)
		gaps := segmentset.Gaps(segments, l.row)
		if in := segmentset.Live(segments); l.documents-in > slowLoad {
			x.cfg.Logger.Info("embedded index is rebuilding its columns from the documents; searches wait for them",
				"index", l.alias.Name(), "documents", l.documents-in)
		}
		made, ok := x.rebuild(l, gaps)
		if !ok || !x.committer.send(segmentset.Loaded(l.alias.segments, segments, made, spoilt)) {
			return
		}
		x.cfg.Logger.Debug("embedded index loaded its columns", "index", l.alias.Name(), "documents", l.documents,
			"segments", len(segments)+len(made), "rebuilt", segmentset.Live(made), "took", time.Since(began))
	}
}

const (
	// rebuildPage is the number of sources copied by one read transaction, rebuildPageBytes that of their bytes after which it ends.
	rebuildPage      = 512
	rebuildPageBytes = 4 << 20
	// progressInterval is how often the progress of a rebuild is logged.
	progressInterval = 5 * time.Second
)

// rebuild builds segments of the documents whose row numbers are in gaps. ok is false when the index was closed.
func (x *loader) rebuild(l *aliasLoad, gaps []segmentset.Range) (segments []segmentset.Member, ok bool) {
	tell := &progress{logger: x.cfg.Logger, name: l.alias.Name(), logged: time.Now()}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(segmentset.Rebuilders())
	for _, s := range segmentset.Split(gaps, l.documents, l.row) {
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

// rebuildRange builds segments of the documents in one range. An error means that the index is closed.
func (x *loader) rebuildRange(a *Alias, s segmentset.Range, tell *progress) ([]segmentset.Member, error) {
	made := x.folder.Rebuild(a.Tree)
	var doc []byte
	for page := (&rowPage{}); !page.ended; {
		if err := readPage(a, &s, page); err != nil {
			return nil, err
		}
		for _, r := range page.rows {
			id, _, err := r.row.split()
			if err == nil {
				if doc, err = r.row.AppendDocument(doc[:0]); err == nil {
					err = made.Add(r.number, string(id), doc)
				}
			}
			if err != nil {
				a.logUnsearchable(string(id), err)
			}
		}
		tell.add(len(page.rows))
		made.Pause()
	}
	return made.Members(), nil
}

// rowPage is a copy of some rows.
type rowPage struct {
	rows  []numbered
	arena []byte
	ended bool
}

type numbered struct {
	number uint64
	row    Row
}

// readPage copies the next rows of a range in one short transaction, and moves the start of the range after them.
func readPage(a *Alias, s *segmentset.Range, page *rowPage) error {
	page.rows, page.arena, page.ended = page.rows[:0], page.arena[:0], true
	if cap(page.arena) > 2*rebuildPageBytes {
		page.arena = nil
	}
	return a.view(func(b *bbolt.Bucket) error {
		c := b.Bucket(bucketRows()).Cursor()
		for key, row := c.Seek(rowKeyOf(s.First)); len(key) == rowKey; key, row = c.Next() {
			number := binary.BigEndian.Uint64(key)
			if number > s.Last {
				return nil
			}
			if len(page.rows) == rebuildPage || len(page.arena) >= rebuildPageBytes {
				s.First, page.ended = number, false
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
	logger *slog.Logger
	name   string

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
	p.logger.Info("embedded index is rebuilding its columns from the documents", "index", p.name, "done", p.done)
}
