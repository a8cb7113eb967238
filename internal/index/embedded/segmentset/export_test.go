package segmentset

import (
	"log/slog"
	"os"

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
	entry, ok := ReadEntry(key, raw)
	if !ok {
		return nil, nil, false
	}
	once, err := entry.encode()
	if err != nil {
		return nil, nil, false
	}
	if entry, ok = ReadEntry(key, once); !ok {
		return once, nil, true
	}
	twice, err = entry.encode()
	return once, twice, err == nil
}

// Keep writes a segment into the folder of an index. path is that of its file; read reads it as a start does.
func Keep(dir string, s *segment.Segment) (path string, read func() (*segment.Segment, error), err error) {
	f := NewFolder(dir, slog.New(slog.DiscardHandler))
	v, err := f.write(func(to *os.File) error {
		_, err := s.WriteTo(to)
		return err
	})
	return f.Path(v.file.number), func() (*segment.Segment, error) { return f.read(v.file) }, err
}

// MembersOf returns the Members of segments that are only in memory.
func MembersOf(segments ...*segment.Segment) (members []Member) {
	for _, s := range segments {
		members = append(members, Member{segment: s})
	}
	return members
}
