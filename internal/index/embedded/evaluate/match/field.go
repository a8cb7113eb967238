package match

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/filter/query"
	"tutti/internal/index/embedded/segment"
)

// sparseOrdinalRatio is the ratio of a column's distinct values to the requested ordinals from which rows are looked up by value
// rather than by a scan, when the ordinals are not contiguous.
const sparseOrdinalRatio = 16

// matchField returns the rows of a clause on a field.
func (v *View) matchField(ctx context.Context, c *Clause, s *Scratch) *roaring.Bitmap {
	column := v.Segment.Column(c.field.Path)
	if column == nil || column.Size() == 0 {
		return roaring.New()
	}
	rows := v.RowCount(c.scope)
	if c.op == query.Exists {
		return column.Exists()
	}
	if query.Ranged(c.field.Type) {
		return rowsOfOrdinals(column, rangeOrdinals(ctx, column, c.spans), rows, s)
	}
	switch c.op {
	case query.Terms:
		return rowsOfOrdinals(column, termOrdinals(column, c), rows, s)
	case query.Range:
		if !c.hasRange || !column.Numeric() {
			return roaring.New()
		}
		from, _ := column.FindKey(c.lo)
		to, equal := column.FindKey(c.hi)
		if equal {
			to++
		}
		return rowsOfRange(column, from, to)
	default:
		return rowsOfOrdinals(column, patternOrdinals(ctx, column, c), rows, s)
	}
}

// termOrdinals returns the ordinals of the values of a clause in ascending order.
func termOrdinals(column *segment.Column, c *Clause) []uint32 {
	var ordinals []uint32
	if column.Numeric() {
		for _, key := range c.keys {
			if ordinal, equal := column.FindKey(key); equal {
				ordinals = append(ordinals, ordinal)
			}
		}
		return ordinals
	}
	for _, term := range c.terms {
		if ordinal, equal := column.FindText(term); equal {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// patternOrdinals returns the ordinals of the values that match a pattern of a clause, in ascending order.
func patternOrdinals(ctx context.Context, column *segment.Column, c *Clause) []uint32 {
	var ordinals []uint32
	from, to := uint32(0), column.Size()
	if len(c.matchers) == 1 && !column.Numeric() {
		from, to = prefixRange(column, c.matchers[0].prefix)
	}
	text := textFunc(column, c.field)
	tried := 0
	for ordinal := from; ordinal < to; ordinal++ {
		if tried += len(c.matchers); tried >= BatchSize {
			tried = 0
			if ctx.Err() != nil {
				break
			}
		}
		if c.matches(text(ordinal)) {
			ordinals = append(ordinals, ordinal)
		}
	}
	return ordinals
}

// textFunc returns a function that returns the text of an ordinal, valid until its next call. Patterns match the text form of
// numbers too.
func textFunc(column *segment.Column, f query.Field) func(ordinal uint32) []byte {
	if column.Numeric() {
		return func(ordinal uint32) []byte { return []byte(query.Text(f, column.Key(ordinal))) }
	}
	return column.Texts().At
}

// matches reports whether a text matches one of the patterns of a clause.
func (c *Clause) matches(text []byte) bool {
	for i := range c.matchers {
		m := &c.matchers[i]
		if strings.HasPrefix(unsafeString(text), m.prefix) && m.matches(text) {
			return true
		}
	}
	return false
}

// prefixRange returns the ordinals [from, to) of the texts that start with prefix.
func prefixRange(column *segment.Column, prefix string) (from, to uint32) {
	if prefix == "" {
		return 0, column.Size()
	}
	from, _ = column.FindText(prefix)
	after := []byte(prefix)
	for n := len(after) - 1; n >= 0; n-- {
		if after[n] < 0xff {
			after[n]++
			to, _ = column.FindText(string(after[:n+1]))
			return from, to
		}
	}
	return from, column.Size()
}

// rowsOfOrdinals returns the rows that have a value with one of the ordinals, which are ascending. rows is the number of rows of
// the column.
func rowsOfOrdinals(column *segment.Column, ordinals []uint32, rows int, s *Scratch) *roaring.Bitmap {
	n := len(ordinals)
	switch {
	case n == 0:
		return roaring.New()
	case int(ordinals[n-1]-ordinals[0])+1 == n:
		return rowsOfRange(column, ordinals[0], ordinals[n-1]+1)
	}
	if column.Postings(ordinals[0]) != nil {
		sets := make([]*roaring.Bitmap, 0, n)
		for _, ordinal := range ordinals {
			sets = append(sets, column.Postings(ordinal))
		}
		return roaring.FastOr(sets...)
	}
	if n > int(column.Size())/sparseOrdinalRatio {
		s.rows = Zeroed(s.rows, (int(column.Size())+63)/64)
		for _, ordinal := range ordinals {
			s.rows[ordinal>>6] |= 1 << (ordinal & 63)
		}
		return scanRows(column, s.rows, rows, s)
	}
	found := roaring.New()
	for at := 0; at < n; {
		end := at + 1
		for end < n && ordinals[end] == ordinals[end-1]+1 {
			end++
		}
		column.AddRows(found, ordinals[at], ordinals[end-1]+1)
		at = end
	}
	return found
}

// rowsOfRange returns the rows that have a value with an ordinal in [from, to).
func rowsOfRange(column *segment.Column, from, to uint32) *roaring.Bitmap {
	switch {
	case from >= to:
		return roaring.New()
	case from == 0 && to == column.Size():
		return column.Exists()
	}
	if to == from+1 {
		if postings := column.Postings(from); postings != nil {
			return postings
		}
	}
	found := roaring.New()
	column.AddRows(found, from, to)
	return found
}

// scanRows returns the rows that have a value whose ordinal is in wanted, by a scan of all rows.
func scanRows(column *segment.Column, wanted []uint64, rows int, s *Scratch) *roaring.Bitmap {
	s.lifted = Zeroed(s.lifted, (rows+63)/64)
	if single := column.Single(); single != nil {
		for row, o := range single {
			if o > 0 && wanted[(o-1)>>6]>>((o-1)&63)&1 != 0 {
				s.lifted[row>>6] |= 1 << (row & 63)
			}
		}
		return roaring.FromDense(s.lifted, true)
	}
	offsets, values := column.Multi()
	for row := range len(offsets) - 1 {
		for _, o := range values[offsets[row]:offsets[row+1]] {
			if wanted[o>>6]>>(o&63)&1 != 0 {
				s.lifted[row>>6] |= 1 << (row & 63)
				break
			}
		}
	}
	return roaring.FromDense(s.lifted, true)
}
