package segment

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Merge returns one segment with the documents of parts that are not deleted, in the order of their Numbers, which must be
// distinct. deleted[i] are the deleted documents of parts[i], nil for none; deleted may be shorter than parts. It neither changes
// nor keeps parts.
func Merge(parts []*Segment, deleted []*roaring.Bitmap) *Segment {
	m := merger{parts: parts, deleted: deleted}
	m.orderDocuments()
	shared := &sliceDeduper{seed: maphash.MakeSeed(), known: map[uint64]any{}}
	out := &Segment{numbers: m.numbers, spaces: map[string]*rowSpace{}, columns: map[string]*Column{}}
	for _, path := range m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.spaces)) }) {
		if sp := m.mergeSpace(path); len(sp.parents) > 0 {
			sp.visitSections(shared)
			sp.shareSpanAndParents()
			out.spaces[path] = sp
		}
	}
	for _, name := range m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.columns)) }) {
		if c := m.mergeColumn(name, out); c != nil {
			c.visitSections(shared)
			out.put(name, c)
		}
	}
	return out
}

// merger is the state of one Merge.
type merger struct {
	parts   []*Segment
	deleted []*roaring.Bitmap
	// runs are the documents that remain, in order.
	runs    []run
	numbers []uint64
}

// run is a range of consecutive documents, or rows of a path, of one part: from from to before to.
type run struct {
	part     int
	from, to uint32
}

// orderDocuments sets the order of the documents.
func (m *merger) orderDocuments() {
	next := make([]int, len(m.parts))
	for {
		first, second := -1, -1 // the parts with the two lowest numbers
		for i, part := range m.parts {
			switch {
			case next[i] == len(part.numbers):
			case first < 0 || part.numbers[next[i]] < m.parts[first].numbers[next[first]]:
				first, second = i, first
			case second < 0 || part.numbers[next[i]] < m.parts[second].numbers[next[second]]:
				second = i
			}
		}
		if first < 0 {
			return
		}
		end := len(m.parts[first].numbers)
		if second >= 0 {
			end, _ = slices.BinarySearch(m.parts[first].numbers, m.parts[second].numbers[next[second]])
		}
		end = max(end, next[first]+1)
		m.addLive(first, uint32(next[first]), uint32(end))
		next[first] = end
	}
}

// deletedOf returns the deleted documents of a part, nil for none.
func (m *merger) deletedOf(part int) *roaring.Bitmap {
	if part >= len(m.deleted) || m.deleted[part] == nil || m.deleted[part].IsEmpty() {
		return nil
	}
	return m.deleted[part]
}

// addLive adds the documents of a range that are not deleted.
func (m *merger) addLive(part int, from, to uint32) {
	deleted, numbers := m.deletedOf(part), m.parts[part].numbers
	if deleted == nil {
		m.runs = append(m.runs, run{part, from, to})
		m.numbers = append(m.numbers, numbers[from:to]...)
		return
	}
	for from < to {
		for from < to && deleted.Contains(from) {
			from++
		}
		end := from
		for end < to && !deleted.Contains(end) {
			end++
		}
		if from < end {
			m.runs = append(m.runs, run{part, from, end})
			m.numbers = append(m.numbers, numbers[from:end]...)
		}
		from = end
	}
}

// names returns the sorted names that occur in any part.
func (m *merger) names(of func(*Segment) []string) []string {
	var all []string
	for _, part := range m.parts {
		all = append(all, of(part)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rowsOf returns the rows of a path that belong to a run of documents.
func (m *merger) rowsOf(path string, documents run) run {
	if path == "" {
		return documents
	}
	span := m.parts[documents.part].Span(path)
	if span == nil {
		return run{part: documents.part}
	}
	return run{documents.part, span[documents.from], span[documents.to]}
}

func (m *merger) mergeSpace(path string) *rowSpace {
	out := &rowSpace{span: make([]uint32, 1, len(m.numbers)+1)}
	for _, part := range m.parts {
		if sp := part.spaces[path]; sp != nil {
			out.parent = sp.parent
			out.parents = slices.Grow(out.parents, len(sp.parents))
		}
	}
	above := uint32(0) // rows of the parent's space before the run
	for _, documents := range m.runs {
		rows, held := m.rowsOf(path, documents), m.rowsOf(out.parent, documents)
		before := uint32(len(out.parents))
		if sp := m.parts[documents.part].spaces[path]; sp != nil {
			for _, parent := range sp.parents[rows.from:rows.to] {
				out.parents = append(out.parents, parent-held.from+above)
			}
			for _, end := range sp.span[documents.from+1 : documents.to+1] {
				out.span = append(out.span, end-rows.from+before)
			}
		} else {
			for range documents.to - documents.from {
				out.span = append(out.span, before)
			}
		}
		above += held.to - held.from
	}
	out.parents = slices.Clip(out.parents)
	return out
}

// sliceDeduper makes columns and row spaces share equal slices: ids that a document has twice, times that are equal, fields that
// every document has.
type sliceDeduper struct {
	seed maphash.Seed
	// known are slices of any type, by the hash of their bytes.
	known map[uint64]any
}

var _ sectionVisitor = (*sliceDeduper)(nil)

// minDedupBytes is the length in bytes below which slices are not compared.
const minDedupBytes = 256

func (s *sliceDeduper) bytes(b *[]byte)  { dedup(s, *b, b) }
func (s *sliceDeduper) u32s(v *[]uint32) { dedup(s, encoded(*v), v) }
func (s *sliceDeduper) u64s(v *[]uint64) { dedup(s, encoded(*v), v) }

// bitmaps does nothing: equal bitmaps are mostly small.
func (s *sliceDeduper) bitmaps(*[]*roaring.Bitmap) {}

// dedup replaces v, whose bytes are raw, by an equal known slice, or adds it to the known slices.
func dedup[T comparable](s *sliceDeduper, raw []byte, v *[]T) {
	if len(raw) < minDedupBytes {
		return
	}
	hash := maphash.Bytes(s.seed, raw)
	if old, ok := s.known[hash]; !ok {
		s.known[hash] = *v
	} else if same, ok := old.([]T); ok && slices.Equal(same, *v) {
		*v = same
	}
}

// shareSpanAndParents makes span and parents one slice when each document has one row.
func (sp *rowSpace) shareSpanAndParents() {
	n := len(sp.parents)
	if len(sp.span) == n+1 && slices.Equal(sp.parents, sp.span[:n]) {
		sp.parents = sp.span[:n:n]
	}
}
