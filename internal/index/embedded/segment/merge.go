package segment

import (
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Merge makes one segment of the documents of parts that are not dead, in the order of their Numbers, which have to be distinct.
// dead[i] are the dead of parts[i], nil for none; dead may be shorter than parts. Nothing of parts is changed or kept.
func Merge(parts []*Segment, dead []*roaring.Bitmap) *Segment {
	m := merger{parts: parts, dead: dead}
	m.order()
	shared := newSharer()
	out := &Segment{numbers: m.numbers, spaces: map[string]*space{}, columns: map[string]*Column{}}
	for _, path := range m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.spaces)) }) {
		if sp := m.space(path); len(sp.parents) > 0 {
			sp.sections(shared)
			sp.alone()
			out.spaces[path] = sp
		}
	}
	for _, name := range m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.columns)) }) {
		if c := m.column(name, out); c != nil {
			c.sections(shared)
			out.put(name, c)
		}
	}
	return out
}

// merger is one Merge.
type merger struct {
	parts []*Segment
	dead  []*roaring.Bitmap
	// runs are the documents that live, in their order.
	runs    []run
	numbers []uint64
}

// run is neighbours in one part: its documents, or rows of one path, from from to before to.
type run struct {
	part     int
	from, to uint32
}

// order finds the order of the documents.
func (m *merger) order() {
	next := make([]int, len(m.parts))
	for {
		first, second := -1, -1 // the parts of the two lowest numbers
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
		m.live(first, uint32(next[first]), uint32(end))
		next[first] = end
	}
}

// deadOf returns the dead of a part, nil for none.
func (m *merger) deadOf(part int) *roaring.Bitmap {
	if part >= len(m.dead) || m.dead[part] == nil || m.dead[part].IsEmpty() {
		return nil
	}
	return m.dead[part]
}

// live adds the documents of a run that are not dead.
func (m *merger) live(part int, from, to uint32) {
	dead, numbers := m.deadOf(part), m.parts[part].numbers
	if dead == nil {
		m.runs = append(m.runs, run{part, from, to})
		m.numbers = append(m.numbers, numbers[from:to]...)
		return
	}
	for from < to {
		for from < to && dead.Contains(from) {
			from++
		}
		end := from
		for end < to && !dead.Contains(end) {
			end++
		}
		if from < end {
			m.runs = append(m.runs, run{part, from, end})
			m.numbers = append(m.numbers, numbers[from:end]...)
		}
		from = end
	}
}

// names returns the names that any part has, in order.
func (m *merger) names(of func(*Segment) []string) []string {
	var all []string
	for _, part := range m.parts {
		all = append(all, of(part)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rowsOf returns the rows of a path for a run of documents.
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

func (m *merger) space(path string) *space {
	out := &space{span: make([]uint32, 1, len(m.numbers)+1)}
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
