package embedded

import (
	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
)

// Merges plays what the rules of merging make of segments that come with so many documents each, each merge at once. It gives
// the highest number of segments that are left, the highest number of documents in memory alone, and how many documents were
// merged for each that came.
func Merges(sizes []int) (segments, unfiled int, each float64) {
	var weights []weight
	total, merged := 0, 0
	for _, size := range sizes {
		total += size
		weights = append(weights, weight{live: size})
		for again := true; again; {
			again = false
			for r := range choose(weights, true) {
				whole := weight{live: r.documents, filed: r.documents >= fileLeast}
				weights = append(append(append([]weight{}, weights[:r.from]...), whole), weights[r.to:]...)
				merged, again = merged+r.documents, true
				break
			}
		}
		waiting := 0
		for _, w := range weights {
			if !w.filed {
				waiting += w.live
			}
		}
		segments, unfiled = max(segments, len(weights)), max(unfiled, waiting)
	}
	return segments, unfiled, float64(merged) / float64(total)
}

// Manifest reads an entry of the manifest, writes it, and reads what was written; ok is false when it is none.
func Manifest(key, raw []byte) (once, twice []byte, ok bool) {
	entry, err := readListed(key, raw)
	if err != nil {
		return nil, nil, false
	}
	if once, err = entry.encode(); err != nil {
		return nil, nil, false
	}
	if entry, err = readListed(key, once); err != nil {
		return once, nil, true
	}
	twice, err = entry.encode()
	return once, twice, err == nil
}

// Row returns the id and the document of a row.
func Row(row []byte) (id, document []byte, err error) {
	if id, _, err = openRow(row); err != nil {
		return nil, nil, err
	}
	document, err = source(row)
	return id, document, err
}

// AppendRow gives the row of a document.
var AppendRow = appendRow

// Database returns the file of an index.
func Database(x *Index) *bbolt.DB { return x.db }

// Keep writes a segment into a folder. path is that of its file, read reads it as a start does.
func Keep(dir string, s *segment.Segment) (path string, read func() (*segment.Segment, error), err error) {
	f := &folder{dir: dir}
	kept, err := f.write(s)
	return f.path(kept.number), func() (*segment.Segment, error) { return f.read(kept) }, err
}

// Lose makes an alias show a moment that no transaction of the file is.
func Lose(x *Index, name string) {
	now := x.aliases[name].shelf.current()
	x.aliases[name].shelf.shown.Store(&shown{current: &snapshot{row: now.row + 1_000_000, parts: now.parts}})
}

// Unsettle makes an alias show what it showed before its last transaction, as in the moment in which that is in the file and its
// outcome is not known yet; settle makes that known.
func Unsettle(x *Index, name string) (settle func()) {
	s := x.aliases[name].shelf
	now := s.current()
	s.shown.Store(&shown{current: &snapshot{row: now.row - 1}, next: now})
	return func() { s.shown.Store(&shown{current: now}) }
}

// Prepare makes of a batch what a transaction applies.
func Prepare(x *Index, b core.Batch) { x.prepare(x.aliases[b.Index], b) }
