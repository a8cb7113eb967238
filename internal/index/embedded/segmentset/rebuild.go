package segmentset

import (
	"runtime"

	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

const (
	// maxRebuiltSegment is the number of documents, and maxRebuiltBytes that of their bytes, from which a rebuilt segment is finished;
	// minRebuildTask is the minimum number of documents for a goroutine.
	maxRebuiltSegment = 65_536
	maxRebuiltBytes   = 16 << 20
	minRebuildTask    = 2_048
	// maxRebuilders is the number of segments that are built at once: each takes several times the bytes of its documents.
	maxRebuilders = 4
)

// Rebuilders returns the number of Rebuilders to use at once.
func Rebuilders() int { return min(runtime.GOMAXPROCS(0), maxRebuilders) }

// Range is a range of row numbers, both ends included.
type Range struct{ First, Last uint64 }

// Gaps returns the ranges of row numbers up to row that are in none of the members.
func Gaps(members []Member, row uint64) []Range {
	var gaps []Range
	next := uint64(1)
	for i := range members {
		first, last := members[i].Rows()
		if first > next {
			gaps = append(gaps, Range{next, first - 1})
		}
		next = last + 1
	}
	if next <= row {
		gaps = append(gaps, Range{next, row})
	}
	return gaps
}

// Split divides gaps of an index with so many documents and row numbers up to row, for one Rebuilder each: into ranges of about
// maxRebuiltSegment documents, or into as many as Rebuilders when there are few documents.
func Split(gaps []Range, documents int, row uint64) []Range {
	total := uint64(0)
	for _, g := range gaps {
		total += g.Last - g.First + 1
	}
	// When documents are rewritten often, most row numbers are unused.
	dense := 1.0
	if row > 0 {
		dense = max(float64(documents)/float64(row), 0.01)
	}
	step := min(max(total/uint64(Rebuilders())+1, minRebuildTask), uint64(maxRebuiltSegment/dense))
	var pieces []Range
	for _, g := range gaps {
		for first := g.First; first <= g.Last; first += step {
			pieces = append(pieces, Range{first, min(first+step-1, g.Last)})
		}
	}
	return pieces
}

// Rebuilder builds segments of documents again, in files when they are large enough.
type Rebuilder struct {
	folder       *Folder
	tree         func() *mapping.Field
	builder      *segment.Builder
	built, bytes int
	members      []Member
}

// Rebuild returns a Rebuilder of documents that are valid in the mapping tree.
func (f *Folder) Rebuild(tree func() *mapping.Field) *Rebuilder {
	return &Rebuilder{folder: f, tree: tree}
}

// Add adds a document and its row number; numbers must be ascending. It returns an error when the document is corrupt.
func (b *Rebuilder) Add(number uint64, id string, document []byte) error {
	if b.builder == nil {
		b.builder = segment.NewBuilder(b.tree())
	}
	if err := b.builder.Add(number, id, document); err != nil {
		return err
	}
	b.built++
	b.bytes += len(document)
	return nil
}

// Pause ends a page of documents: a segment that is large enough is finished.
func (b *Rebuilder) Pause() {
	if b.built >= maxRebuiltSegment || b.bytes >= maxRebuiltBytes {
		b.finish()
	}
}

// Members returns the segments of all added documents.
func (b *Rebuilder) Members() []Member {
	b.finish()
	return b.members
}

func (b *Rebuilder) finish() {
	if b.built > 0 {
		b.members = append(b.members, b.folder.persist(b.builder.Segment()))
	}
	b.builder, b.built, b.bytes = nil, 0, 0
}
