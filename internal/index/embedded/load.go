package embedded

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"
)

// load is what the file says of an alias' segments when it is opened.
type load struct {
	alias *alias
	// row is the last row number, live the number of documents.
	row    uint64
	live   int
	listed []*listed
	deaths []uint64
}

// newLoad reads the manifest, and makes the buckets of one for an alias that was written before there were segments. An entry
// that cannot be read is forgotten: its documents are made a segment again.
func newLoad(a *alias, b *bbolt.Bucket) (*load, error) {
	for _, name := range [][]byte{bucketSegments(), bucketDeaths()} {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return nil, err
		}
	}
	l := &load{alias: a, row: a.shelf.row, live: liveOf(b)}
	segments, spoilt := b.Bucket(bucketSegments()), [][]byte(nil)
	err := segments.ForEach(func(key, value []byte) error {
		if entry, err := readListed(key, value); err == nil {
			l.listed = append(l.listed, entry)
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
	slices.SortFunc(l.listed, func(a, b *listed) int { return cmp.Compare(a.first, b.first) })
	l.deaths, err = readDeaths(b)
	slices.Sort(l.deaths)
	return l, err
}

// files returns the numbers of all files in the manifests.
func files(loads []*load) []uint64 {
	var numbers []uint64
	for _, l := range loads {
		for _, entry := range l.listed {
			numbers = append(numbers, entry.file.number)
		}
	}
	return numbers
}

// slowLoad is from how many documents on making segments of sources is told.
const slowLoad = 50_000

// loadSegments brings the segments of each alias into memory, and makes those that no file has of the sources. Searches wait
// for theirs, writes do not.
func (x *Index) loadSegments(loads []*load) {
	for _, l := range loads {
		began := time.Now()
		volumes, spoilt := x.readFiles(l)
		gaps := gapsOf(volumes, l.row)
		if in := documentsIn(volumes); l.live-in > slowLoad {
			x.cfg.Logger.Info("embedded index makes its columns of the documents; searches wait for them",
				"index", l.alias.name, "documents", l.live-in)
		}
		made, ok := x.rebuild(l, gaps)
		all := inOrder(slices.Concat(volumes, made))
		if !ok || !x.deliver(&swap{alias: l.alias, opens: true, put: all, fresh: filesOf(made), removed: spoilt}) {
			return
		}
		x.cfg.Logger.Debug("embedded index loaded its columns", "index", l.alias.name, "documents", l.live,
			"segments", len(volumes)+len(made), "rebuilt", documentsIn(made), "took", time.Since(began))
	}
}

func inOrder(volumes []volume) []volume {
	slices.SortFunc(volumes, func(a, b volume) int { return cmp.Compare(a.last(), b.last()) })
	return volumes
}

// documentsIn counts the live documents of volumes.
func documentsIn(volumes []volume) int {
	n := 0
	for i := range volumes {
		n += volumes[i].live()
	}
	return n
}

// readFiles returns the segments of the manifest's files, with what died in them, and the numbers of the files that are of no use.
func (x *Index) readFiles(l *load) (volumes []volume, spoilt []uint64) {
	read := make([]volume, len(l.listed))
	group := errgroup.Group{}
	group.SetLimit(workers())
	for i, entry := range l.listed {
		group.Go(func() error {
			s, err := x.folder.read(entry.file)
			if err == nil {
				numbers := s.Numbers()
				if len(numbers) == 0 || uint32(len(numbers)) != entry.documents || numbers[0] != entry.first || numbers[len(numbers)-1] != entry.last {
					err = errCut("segment")
				}
			}
			if err != nil {
				x.cfg.Logger.Warn("embedded index makes a segment anew whose file cannot be read", "index", l.alias.name,
					"file", x.folder.path(entry.file.number), "err", err)
				return nil
			}
			read[i] = volume{segment: s, dead: entry.dead, file: entry.file, noted: entry.dead}
			return nil
		})
	}
	// The functions give no error: what cannot be read is made anew.
	_ = group.Wait()
	for i, entry := range l.listed {
		overlaps := len(volumes) > 0 && entry.first <= volumes[len(volumes)-1].last()
		if read[i].segment == nil || overlaps {
			spoilt = append(spoilt, entry.file.number)
			continue
		}
		volumes = append(volumes, read[i])
	}
	kill(volumes, l.deaths)
	return volumes, spoilt
}

// span is a range of row numbers, both ends included.
type span struct{ first, last uint64 }

// gapsOf returns the row numbers up to row that no volume has.
func gapsOf(volumes []volume, row uint64) []span {
	var gaps []span
	next := uint64(1)
	for i := range volumes {
		if first := volumes[i].segment.Numbers()[0]; first > next {
			gaps = append(gaps, span{next, first - 1})
		}
		next = volumes[i].last() + 1
	}
	if next <= row {
		gaps = append(gaps, span{next, row})
	}
	return gaps
}
