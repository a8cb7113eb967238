package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"tutti/internal/index/embedded/segment"
)

// aliasLoad is what the file contains about an alias' segments when it is opened.
type aliasLoad struct {
	alias *alias
	// row is the last row number, documents the number of documents.
	row       uint64
	documents int
	manifest  []*manifestEntry
	deletes   []uint64
}

// newAliasLoad reads the manifest, creating its buckets for an alias that was written before there were segments. An entry that
// cannot be read is deleted: its documents are rebuilt.
func newAliasLoad(a *alias, b *bbolt.Bucket) (*aliasLoad, error) {
	for _, name := range [][]byte{bucketSegments(), bucketDeletes()} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return nil, err
		}
	}
	l := &aliasLoad{alias: a, row: a.segments.row, documents: liveOf(b)}
	segments, spoilt := b.Bucket(bucketSegments()), [][]byte(nil)
	err := segments.ForEach(func(key, value []byte) error {
		if entry, err := readManifestEntry(key, value); err == nil {
			l.manifest = append(l.manifest, entry)
		} else {
			spoilt = append(spoilt, slices.Clone(key))
		}
		return nil
	})
	for _, key := range spoilt {
		err = errors.Join(err, segments.Delete(key))
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.manifest, func(a, b *manifestEntry) int { return cmp.Compare(a.first, b.first) })
	l.deletes, err = readDeletes(b)
	slices.Sort(l.deletes)
	return l, err
}

// manifestFiles returns the numbers of all files in the manifests.
func manifestFiles(loads []*aliasLoad) []uint64 {
	var numbers []uint64
	for _, l := range loads {
		for _, entry := range l.manifest {
			numbers = append(numbers, entry.file.number)
		}
	}
	return numbers
}

// loader loads the segments of aliases after a start.
type loader struct {
	*store
	folder *folder
	merger *merger
}

// slowLoad is the number of documents from which rebuilding segments is logged.
const slowLoad = 50_000

// run loads the segments of each alias, and rebuilds those without a file from the sources. Searches wait for the segments
// of their alias, writes do not.
func (x *loader) run(loads []*aliasLoad) {
	for _, l := range loads {
		began := time.Now()
		segments, spoilt := x.readFiles(l)
		gaps := uncoveredRows(segments, l.row)
		if in := liveDocuments(segments); l.documents-in > slowLoad {
			x.cfg.Logger.Info("embedded index is rebuilding its columns from the documents; searches wait for them",
				"index", l.alias.name, "documents", l.documents-in)
		}
		made, ok := x.rebuild(l, gaps)
		all := sortByRow(slices.Concat(segments, made))
		if !ok || !x.merger.send(&segmentSwap{alias: l.alias, initial: true, put: all, fresh: filesOf(made), removed: spoilt}) {
			return
		}
		x.cfg.Logger.Debug("embedded index loaded its columns", "index", l.alias.name, "documents", l.documents,
			"segments", len(segments)+len(made), "rebuilt", liveDocuments(made), "took", time.Since(began))
	}
}

func sortByRow(segments []aliasSegment) []aliasSegment {
	slices.SortFunc(segments, func(a, b aliasSegment) int { return cmp.Compare(a.last(), b.last()) })
	return segments
}

// liveDocuments returns the number of documents that are not deleted.
func liveDocuments(segments []aliasSegment) int {
	n := 0
	for i := range segments {
		n += segments[i].liveCount()
	}
	return n
}

// readFiles returns the segments of the manifest's files with their deletions, and the numbers of the files that cannot be used.
func (x *loader) readFiles(l *aliasLoad) (segments []aliasSegment, spoilt []uint64) {
	read := make([]aliasSegment, len(l.manifest))
	group := errgroup.Group{}
	group.SetLimit(workers())
	for i, entry := range l.manifest {
		group.Go(func() error {
			s, err := x.folder.read(entry.file)
			if err == nil {
				numbers := s.Numbers()
				if len(numbers) == 0 || uint32(len(numbers)) != entry.documents || numbers[0] != entry.first || numbers[len(numbers)-1] != entry.last {
					err = errCorrupt("segment")
				}
			}
			if err != nil {
				x.cfg.Logger.Warn("embedded index rebuilds a segment whose file cannot be read", "index", l.alias.name,
					"file", x.folder.path(entry.file.number), "err", err)
				return nil
			}
			if !s.Covers(l.alias.tree.Load()) {
				x.cfg.Logger.Info("embedded index rebuilds a segment of an earlier release, which lacks values of its types", "index", l.alias.name,
					"file", x.folder.path(entry.file.number))
				return nil
			}
			read[i] = aliasSegment{segment: s, deleted: entry.deleted, file: entry.file, savedDeleted: entry.deleted}
			return nil
		})
	}
	// The functions return no error: what cannot be read is rebuilt.
	_ = group.Wait()
	for i, entry := range l.manifest {
		overlaps := len(segments) > 0 && entry.first <= segments[len(segments)-1].last()
		if read[i].segment == nil || overlaps {
			spoilt = append(spoilt, entry.file.number)
			continue
		}
		segments = append(segments, read[i])
	}
	markDeleted(segments, l.deletes)
	return segments, spoilt
}

// rowRange is a range of row numbers, both ends included.
type rowRange struct{ first, last uint64 }

// uncoveredRows returns the ranges of row numbers up to row that are in none of the segments.
func uncoveredRows(segments []aliasSegment, row uint64) []rowRange {
	var gaps []rowRange
	next := uint64(1)
	for i := range segments {
		if first := segments[i].segment.Numbers()[0]; first > next {
			gaps = append(gaps, rowRange{next, first - 1})
		}
		next = segments[i].last() + 1
	}
	if next <= row {
		gaps = append(gaps, rowRange{next, row})
	}
	return gaps
}

const (
	// maxRebuiltSegment is the number of documents, and maxRebuiltBytes that of their bytes, from which a rebuilt segment is finished;
	// minRebuildTask is the minimum number of documents for a goroutine.
	maxRebuiltSegment = 65_536
	maxRebuiltBytes   = 16 << 20
	minRebuildTask    = 2_048
	// maxRebuilders is the number of segments that are built at once: each takes several times the bytes of its documents.
	maxRebuilders = 4
	// rebuildPage is the number of sources copied by one read transaction, rebuildPageBytes that of their bytes after which it ends.
	rebuildPage      = 512
	rebuildPageBytes = 4 << 20
	// progressInterval is how often the progress of a rebuild is logged.
	progressInterval = 5 * time.Second
)

// workers returns the number of goroutines that load and rebuild.
func workers() int { return runtime.GOMAXPROCS(0) }

// rebuild builds segments of the documents whose row numbers are in gaps. ok is false when the index was closed.
func (x *loader) rebuild(l *aliasLoad, gaps []rowRange) (segments []aliasSegment, ok bool) {
	tell := &progress{logger: x.cfg.Logger, name: l.alias.name, logged: time.Now()}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(min(workers(), maxRebuilders))
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
		dense = max(float64(l.documents)/float64(l.row), 0.01)
	}
	step := min(max(total/uint64(min(workers(), maxRebuilders))+1, minRebuildTask), uint64(maxRebuiltSegment/dense))
	var pieces []rowRange
	for _, g := range gaps {
		for first := g.first; first <= g.last; first += step {
			pieces = append(pieces, rowRange{first, min(first+step-1, g.last)})
		}
	}
	return pieces
}

// rebuildRange builds segments of the documents in one range. An error means that the index is closed.
func (x *loader) rebuildRange(a *alias, s rowRange, tell *progress) (segments []aliasSegment, err error) {
	var builder *segment.Builder
	built, bytes := 0, 0
	finish := func() {
		if built > 0 {
			segments = append(segments, x.folder.persist(builder.Segment()))
		}
		builder, built, bytes = nil, 0, 0
	}
	var doc []byte
	for page := (&rowPage{}); !page.ended; {
		if err := x.readPage(a, &s, page); err != nil {
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
				logUnsearchable(x.cfg.Logger, a, string(id), err)
				continue
			}
			built++
			bytes += len(doc)
		}
		tell.add(len(page.rows))
		if built >= maxRebuiltSegment || bytes >= maxRebuiltBytes {
			finish()
		}
	}
	finish()
	return segments, nil
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
func (x *loader) readPage(a *alias, s *rowRange, page *rowPage) error {
	page.rows, page.arena, page.ended = page.rows[:0], page.arena[:0], true
	if cap(page.arena) > 2*rebuildPageBytes {
		page.arena = nil
	}
	return x.viewIndex(a, func(_ *alias, b *bbolt.Bucket) error {
		c := b.Bucket(bucketRows()).Cursor()
		for key, row := c.Seek(rowKeyOf(s.first)); len(key) == rowKey; key, row = c.Next() {
			number := binary.BigEndian.Uint64(key)
			if number > s.last {
				return nil
			}
			if len(page.rows) == rebuildPage || len(page.arena) >= rebuildPageBytes {
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
