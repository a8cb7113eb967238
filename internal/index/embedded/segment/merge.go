package segment

import (
	"io"
	"maps"
	"math"
	"runtime"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/segment/sectionfile"
)

// Merge returns one segment in memory with the documents of parts that are not deleted, in the order of their Numbers, which must be
// distinct. deleted[i] are the deleted documents of parts[i], nil for none; deleted may be shorter than parts. It neither changes
// nor keeps parts.
func Merge(parts []*Segment, deleted []*roaring.Bitmap) *Segment {
	var file sectionfile.Memory
	err := MergeTo(&file, parts, deleted)
	var s *Segment
	if err == nil {
		s, err = Read(io.NewSectionReader(&file, 0, file.Size()), file.Size())
	}
	if err != nil {
		panic(err) // a merge into memory fails only by a bug
	}
	return s
}

// MergeTo is Merge into a segment file. It holds the values of at most one column at a time. CodeUnavailable when out fails, and the
// contents of out are then undefined.
func MergeTo(out sectionfile.Output, parts []*Segment, deleted []*roaring.Bitmap) error {
	defer runtime.KeepAlive(parts)
	m := &merger{parts: parts, deleted: deleted, rows: map[string]int{}}
	m.orderDocuments()
	m.rows[""] = len(m.numbers)
	paths := m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.spaces)) })
	columns := m.names(func(s *Segment) []string { return slices.Collect(maps.Keys(s.columns)) })
	m.out = sectionfile.New(out, m.largestDirectory(paths, columns))
	dir := newDirectory(len(m.numbers))
	m.out.U64s(&m.numbers)
	for _, path := range paths {
		if sp := m.mergeSpace(path); len(sp.parents) > 0 {
			sp.visitSections(m.out)
			m.rows[path] = len(sp.parents)
			dir.Spaces = append(dir.Spaces, sectionfile.Space{Path: path, Parent: sp.parent})
		}
	}
	for _, name := range columns {
		if c := m.mergeColumn(name); c != nil {
			c.visitSections(m.out)
			dir.Columns = append(dir.Columns, c.entry(name))
		}
	}
	return m.out.Finish(dir)
}

// largestDirectory returns a directory with at least as many bytes as that of the merged segment.
func (m *merger) largestDirectory(paths, columns []string) sectionfile.Directory {
	const spaceSections, columnSections = 2, 11
	dir := newDirectory(len(m.numbers))
	for _, path := range paths {
		dir.Spaces = append(dir.Spaces, sectionfile.Space{Path: path, Parent: path}) // the parent of a path is shorter
	}
	for _, name := range columns {
		entry := m.newestColumn(name).entry(name)
		entry.Texts, entry.Packed = math.MaxUint32, true
		dir.Columns = append(dir.Columns, entry)
	}
	sections := 1 + spaceSections*len(paths) + columnSections*len(columns)
	dir.Sections = slices.Repeat([]sectionfile.Section{{Length: math.MaxUint64}}, sections)
	return dir
}

// merger is the state of one Merge.
type merger struct {
	parts   []*Segment
	deleted []*roaring.Bitmap
	// runs are the documents that remain, in order.
	runs    []run
	numbers []uint64
	// rows are the numbers of rows by path.
	rows map[string]int
	out  *sectionfile.File
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

// shareSpanAndParents makes span and parents one slice when each document has one row.
func (sp *rowSpace) shareSpanAndParents() {
	n := len(sp.parents)
	if len(sp.span) == n+1 && slices.Equal(sp.parents, sp.span[:n]) {
		sp.parents = sp.span[:n:n]
	}
}
