package match

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// sparseRowRatio is the ratio of the rows of a path to the lifted rows from which these are looked up one by one.
const sparseRowRatio = 16

// lift returns the rows of an ancestor path that contain rows of path. Elements of a parent are consecutive, so the result is in
// order.
func (v *View) lift(path, to string, rows *roaring.Bitmap, s *Scratch) *roaring.Bitmap {
	have := v.RowCount(path)
	n := int(rows.GetCardinality())
	switch {
	case n == 0:
		return roaring.New()
	case n < have/sparseRowRatio:
		return v.liftFew(path, to, rows, s)
	case to == "":
		return v.liftSpans(v.Segment.Span(path), rows, n == have, s)
	default:
		return v.liftMany(path, to, rows, s)
	}
}

// parentSteps returns the parent slices on the way from path up to an ancestor.
func (v *View) parentSteps(path, to string) [][]uint32 {
	var steps [][]uint32
	for path != to && path != "" {
		steps = append(steps, v.Segment.Parents(path))
		path = v.parentPath(path)
	}
	return steps
}

// liftFew looks up the ancestor of each row.
func (v *View) liftFew(path, to string, rows *roaring.Bitmap, s *Scratch) *roaring.Bitmap {
	steps := v.parentSteps(path, to)
	lifted := roaring.New()
	many := rows.ManyIterator()
	for n := many.NextMany(s.Docs); n > 0; n = many.NextMany(s.Docs) {
		lifted.AddMany(ancestors(steps, s.Docs[:n], s.out[:0]))
	}
	return lifted
}

// ancestors appends the ancestors of rows to into, without consecutive duplicates.
func ancestors(steps [][]uint32, rows, into []uint32) []uint32 {
	for _, row := range rows {
		for _, step := range steps {
			row = step[row]
		}
		if n := len(into); n == 0 || into[n-1] != row {
			into = append(into, row)
		}
	}
	return into
}

// liftMany looks up the ancestor of each row and collects them in a dense bitmap, which is faster for large sets.
func (v *View) liftMany(path, to string, rows *roaring.Bitmap, s *Scratch) *roaring.Bitmap {
	steps := v.parentSteps(path, to)
	s.lifted = Zeroed(s.lifted, (v.RowCount(to)+63)/64)
	many := rows.ManyIterator()
	for n := many.NextMany(s.Docs); n > 0; n = many.NextMany(s.Docs) {
		for _, row := range ancestors(steps, s.Docs[:n], s.out[:0]) {
			s.lifted[row>>6] |= 1 << (row & 63)
		}
	}
	return roaring.FromDense(s.lifted, true)
}

// liftSpans tests for each document whether any of its rows is in rows; all means that rows has all rows.
func (v *View) liftSpans(span []uint32, rows *roaring.Bitmap, all bool, s *Scratch) *roaring.Bitmap {
	docs := len(span) - 1
	s.lifted = Zeroed(s.lifted, (docs+63)/64)
	if all {
		for d := range docs {
			if span[d] < span[d+1] {
				s.lifted[d>>6] |= 1 << (d & 63)
			}
		}
		return roaring.FromDense(s.lifted, true)
	}
	s.rows = DenseWords(s.rows, rows, int(span[docs]))
	for d := range docs {
		if anyInRange(s.rows, span[d], span[d+1]) {
			s.lifted[d>>6] |= 1 << (d & 63)
		}
	}
	return roaring.FromDense(s.lifted, true)
}

// anyInRange reports whether a row in [from, to) is in a set.
func anyInRange(set []uint64, from, to uint32) bool {
	if from >= to {
		return false
	}
	first, last := from>>6, (to-1)>>6
	head, tail := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if first == last {
		return set[first]&head&tail != 0
	}
	if set[first]&head != 0 || set[last]&tail != 0 {
		return true
	}
	for _, word := range set[first+1 : last] {
		if word != 0 {
			return true
		}
	}
	return false
}
