package embedded

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
)

// aliasLoad is what the file contains about an alias' segments when it is opened.
type aliasLoad struct {
	alias *alias
	// row is the last row number, live the number of documents.
	row      uint64
	live     int
	manifest []*manifestEntry
	deletes  []uint64
}

// newAliasLoad reads the manifest, creating its buckets for an alias that was written before there were segments. An entry that
// cannot be read is deleted: its documents are rebuilt.
func newAliasLoad(a *alias, b *bbolt.Bucket) (*aliasLoad, error) {
	for _, name := range [][]byte{bucketSegments(), bucketDeletes()} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return nil, err
		}
	}
	l := &aliasLoad{alias: a, row: a.segments.row, live: liveOf(b)}
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

// slowLoad is the number of documents from which rebuilding segments is logged.
const slowLoad = 50_000

// loadSegments loads the segments of each alias, and rebuilds those without a file from the sources. Searches wait for the segments
// of their alias, writes do not.
func (x *Index) loadSegments(loads []*aliasLoad) {
	for _, l := range loads {
		began := time.Now()
		segments, spoilt := x.readFiles(l)
		gaps := uncoveredRows(segments, l.row)
		if in := liveDocuments(segments); l.live-in > slowLoad {
			x.cfg.Logger.Info("embedded index is rebuilding its columns from the documents; searches wait for them",
				"index", l.alias.name, "documents", l.live-in)
		}
		made, ok := x.rebuild(l, gaps)
		all := sortByRow(slices.Concat(segments, made))
		if !ok || !x.sendSwap(&segmentSwap{alias: l.alias, initial: true, put: all, fresh: filesOf(made), removed: spoilt}) {
			return
		}
		x.cfg.Logger.Debug("embedded index loaded its columns", "index", l.alias.name, "documents", l.live,
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
func (x *Index) readFiles(l *aliasLoad) (segments []aliasSegment, spoilt []uint64) {
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
