package evaluate

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/evaluate/match"
	"tutti/internal/index/embedded/segment"
)

// counter counts documents. last is the document counted last, plus one, so that its further values are not counted again. The two
// are adjacent because they are always used together.
type counter struct{ count, last uint32 }

// valueCount is a value and the number of its documents.
type valueCount struct{ ordinal, count uint32 }

// values reads the values of a field in a part for facets.
type values struct {
	column *segment.Column
	// single or offsets and ordinals are those of the column.
	single, offsets, ordinals []uint32
	// span is the row range of each document, nil when the rows are documents.
	span []uint32
	// elements are the rows to count, nil for all.
	elements []uint64
}

func newValues(column *segment.Column, span []uint32, elements []uint64) *values {
	v := &values{column: column, span: span, elements: elements, single: column.Single()}
	if v.single == nil {
		v.offsets, v.ordinals = column.Multi()
	}
	return v
}

// countable returns the column of a field for facets and orders, nil if its values have neither.
func countable(v *match.View, f query.Field) *segment.Column {
	if f.Path != fieldID && !query.Countable(f.Type) {
		return nil
	}
	return v.Segment.Column(f.Path)
}

// spanOf returns the row range of each document in a path, nil for "".
func spanOf(v *match.View, path string) []uint32 {
	if path == "" {
		return nil
	}
	return v.Segment.Span(path)
}

// postingsCost is the cost of counting one value by its bitmap in 65,536 documents, in the number of documents scanned in the same
// time.
const postingsCost = 200

// perDocument returns the number of docs by value, without values of none. Instants of one millisecond count as one value,
// represented by the first of them, as in Elasticsearch's date_nanos.
func (v *values) perDocument(ctx context.Context, f query.Field, docs match.Documents, s *scratch) []valueCount {
	size := v.column.Size()
	if fieldtype.Of(f.Type).Group == fieldtype.Nanos {
		return v.perMillisecond(ctx, docs, s)
	}
	if v.span == nil && v.column.Postings(0) != nil {
		chunks := v.column.Exists().Maximum()>>16 + 1
		if docs.All || int(size)*int(chunks)*postingsCost < docs.Count {
			return v.perPosting(docs)
		}
	}
	v.count(ctx, docs.Bits, nil, int(size), s)
	return nonZero(s.counters)
}

// perMillisecond counts by the millisecond of instants.
func (v *values) perMillisecond(ctx context.Context, docs match.Documents, s *scratch) []valueCount {
	size := v.column.Size()
	s.groups = match.Zeroed(s.groups, int(size)+1)
	var firsts []uint32
	last := int64(0)
	for ordinal := range size {
		if ms := query.Millis(v.column.Key(ordinal)); len(firsts) == 0 || ms != last {
			firsts, last = append(firsts, ordinal), ms
		}
		s.groups[ordinal+1] = uint32(len(firsts))
	}
	v.count(ctx, docs.Bits, s.groups, len(firsts), s)
	list := nonZero(s.counters)
	for i := range list {
		list[i].ordinal = firsts[list[i].ordinal]
	}
	return list
}

// perPosting counts by the bitmaps of values, without reading documents.
func (v *values) perPosting(docs match.Documents) []valueCount {
	var list []valueCount
	for ordinal := range v.column.Size() {
		postings := v.column.Postings(ordinal)
		var n uint64
		if docs.All {
			n = postings.GetCardinality()
		} else {
			n = postings.AndCardinality(docs.Bits)
		}
		if n > 0 {
			list = append(list, valueCount{ordinal, uint32(n)})
		}
	}
	return list
}

// nonZero returns the values with a count. The first counter is that of rows without a value.
func nonZero(counters []counter) []valueCount {
	n := 0
	for _, t := range counters[1:] {
		if t.count > 0 {
			n++
		}
	}
	list := make([]valueCount, 0, n)
	for i, t := range counters[1:] {
		if t.count > 0 {
			list = append(list, valueCount{uint32(i), t.count})
		}
	}
	return list
}

// count counts docs in s.counters, by the ordinal of the value plus one, or, unless groups is nil, by the group at that index.
// Groups are numbered from 1 to n in the order of ordinals.
func (v *values) count(ctx context.Context, docs *roaring.Bitmap, groups []uint32, n int, s *scratch) {
	s.counters = match.Zeroed(s.counters, n+1)
	counters := s.counters
	s.Batches(ctx, docs, func(docs []uint32) {
		switch {
		case v.span == nil && v.single != nil:
			for _, d := range docs {
				counters[groupOf(groups, v.single[d])].count++
			}
		case v.single != nil:
			v.countElements(docs, groups, counters)
		default:
			v.countMulti(docs, groups, counters)
		}
	})
}

// groupOf returns the group of an ordinal plus one, which is that number itself when groups is nil.
func groupOf(groups []uint32, o uint32) uint32 {
	if groups != nil {
		return groups[o]
	}
	return o
}

// countElements is countMulti for elements with one value each, which most are.
func (v *values) countElements(docs, groups []uint32, counters []counter) {
	for _, d := range docs {
		for row := v.span[d]; row < v.span[d+1]; row++ {
			if v.elements != nil && v.elements[row>>6]>>(row&63)&1 == 0 {
				continue
			}
			o := v.single[row]
			if groups != nil {
				o = groups[o]
			}
			if t := &counters[o]; t.last != d+1 {
				t.last = d + 1
				t.count++
			}
		}
	}
}

func (v *values) countMulti(docs, groups []uint32, counters []counter) {
	for _, d := range docs {
		for row, end := v.rowsOf(d); row < end; row++ {
			if !v.counted(row) {
				continue
			}
			for _, o := range v.ordinals[v.offsets[row]:v.offsets[row+1]] {
				if t := &counters[groupOf(groups, o+1)]; t.last != d+1 {
					t.last = d + 1
					t.count++
				}
			}
		}
	}
}

// rowsOf returns the rows of a document, from row to before end.
func (v *values) rowsOf(doc uint32) (row, end uint32) {
	if v.span == nil {
		return doc, doc + 1
	}
	return v.span[doc], v.span[doc+1]
}

// counted reports whether a row is counted.
func (v *values) counted(row uint32) bool {
	return v.elements == nil || v.elements[row>>6]>>(row&63)&1 != 0
}

// each calls do with the ordinal of each counted value of a document, duplicates included.
func (v *values) each(doc uint32, do func(ordinal uint32)) {
	row, end := v.rowsOf(doc)
	for ; row < end; row++ {
		if !v.counted(row) {
			continue
		}
		if v.single != nil {
			if o := v.single[row]; o > 0 {
				do(o - 1)
			}
			continue
		}
		for _, o := range v.ordinals[v.offsets[row]:v.offsets[row+1]] {
			do(o)
		}
	}
}
