package embedded

import (
	"os"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
)

// Merges simulates the merge rules for segments that arrive with so many documents each, applying each merge at once. It returns
// the highest number of segments, the highest number of documents only in memory, and the average number of merges per document.
func Merges(sizes []int) (segments, unfiled int, each float64) {
	var weights []segmentStats
	total, merged := 0, 0
	for _, size := range sizes {
		total += size
		weights = append(weights, segmentStats{live: size})
		for again := true; again; {
			again = false
			for r := range chooseMerges(weights, true) {
				whole := segmentStats{live: r.documents, onDisk: r.documents >= minFileDocuments}
				weights = append(append(append([]segmentStats{}, weights[:r.from]...), whole), weights[r.to:]...)
				merged, again = merged+r.documents, true
				break
			}
		}
		waiting := 0
		for _, w := range weights {
			if !w.onDisk {
				waiting += w.live
			}
		}
		segments, unfiled = max(segments, len(weights)), max(unfiled, waiting)
	}
	return segments, unfiled, float64(merged) / float64(total)
}

// Manifest decodes a manifest entry, encodes it, and decodes and encodes the result; ok is false when it is invalid.
func Manifest(key, raw []byte) (once, twice []byte, ok bool) {
	entry, err := readManifestEntry(key, raw)
	if err != nil {
		return nil, nil, false
	}
	if once, err = entry.encode(); err != nil {
		return nil, nil, false
	}
	if entry, err = readManifestEntry(key, once); err != nil {
		return once, nil, true
	}
	twice, err = entry.encode()
	return once, twice, err == nil
}

// Row returns the id and the document of a row.
func Row(row []byte) (id, document []byte, err error) {
	if id, _, err = splitRow(row); err != nil {
		return nil, nil, err
	}
	document, err = source(row)
	return id, document, err
}

// AppendRow appends the row of a document.
var AppendRow = appendRow

// Database returns the bbolt file of an index.
func Database(x *Index) *bbolt.DB { return x.store.db }

// Keep writes a segment into a folder. path is that of its file; read reads it as a start does.
func Keep(dir string, s *segment.Segment) (path string, read func() (*segment.Segment, error), err error) {
	f := &folder{dir: dir}
	v, err := f.write(func(to *os.File) error {
		_, err := s.WriteTo(to)
		return err
	})
	return f.path(v.file.number), func() (*segment.Segment, error) { return f.read(v.file) }, err
}

// BreakSnapshot writes a snapshot for an alias that matches no transaction of the file.
func BreakSnapshot(x *Index, name string) {
	now := x.store.aliases[name].segments.current()
	x.store.aliases[name].segments.visible.Store(&visibleSnapshots{current: &snapshot{row: now.row + 1_000_000, parts: now.parts}})
}

// HideLastTransaction makes an alias show its state before the last transaction, as while the outcome of that is unknown; settle
// ends this.
func HideLastTransaction(x *Index, name string) (settle func()) {
	s := x.store.aliases[name].segments
	now := s.current()
	s.visible.Store(&visibleSnapshots{current: &snapshot{row: now.row - 1}, next: now})
	return func() { s.visible.Store(&visibleSnapshots{current: now}) }
}

// Prepare prepares a batch as Write does.
func Prepare(x *Index, b core.Batch) { x.prepare(x.store.aliases[b.Index], b) }

// Project returns what a projection on paths keeps of a document in a buffer of a capacity.
func Project(paths []string, doc []byte, capacity int) (kept []byte, fits bool) {
	return newProjection(paths).append(make([]byte, 0, capacity), doc)
}
