package segment

import "slices"

// byRow holds the values of each row: single as returned by Column.Single, offsets and values as returned by Column.Multi.
type byRow struct {
	single, offsets, values []uint32
}

// invertedOnly reports whether a column stores only the rows of each value, because its values are seldom read by row.
func (b *byRow) invertedOnly() bool { return b.single == nil && b.offsets == nil }

// newByRow returns the values of n rows from pairs of a row and an ordinal, in ascending order of rows. Duplicates in a row are
// removed unless duplicates is set. It overwrites both slices.
func newByRow(rows, ordinals []uint32, n int, duplicates bool) byRow {
	several, kept := false, 0
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end] == rows[i] {
			end++
		}
		group := ordinals[i:end]
		if len(group) > 1 {
			slices.Sort(group)
			if !duplicates {
				group = slices.Compact(group)
			}
			several = several || len(group) > 1
		}
		row := rows[i]
		for _, ordinal := range group {
			rows[kept], ordinals[kept] = row, ordinal
			kept++
		}
		i = end
	}
	rows, ordinals = rows[:kept], ordinals[:kept]
	if !several {
		single := make([]uint32, n)
		for i, row := range rows {
			single[row] = ordinals[i] + 1
		}
		return byRow{single: single}
	}
	offsets := make([]uint32, n+1)
	for _, row := range rows {
		offsets[row+1]++
	}
	for row := range n {
		offsets[row+1] += offsets[row]
	}
	return byRow{offsets: offsets, values: slices.Clone(ordinals)}
}

// eachValue calls each with the row and the ordinal of all values, by row and without duplicates.
func (b *byRow) eachValue(each func(row, ordinal uint32)) {
	if b.single != nil {
		for row, ordinal := range b.single {
			if ordinal > 0 {
				each(uint32(row), ordinal-1)
			}
		}
		return
	}
	for row := range max(0, len(b.offsets)-1) {
		last := ^uint32(0)
		for _, ordinal := range b.values[b.offsets[row]:b.offsets[row+1]] {
			if ordinal != last {
				each(uint32(row), ordinal)
			}
			last = ordinal
		}
	}
}

// invert returns the rows of each of size values.
func (b *byRow) invert(rows, size int) byValue {
	starts := make([]uint32, size+2) // starts[o+1] is the next free place of value o
	b.eachValue(func(_, ordinal uint32) { starts[ordinal+2]++ })
	for o := range size {
		starts[o+2] += starts[o+1]
	}
	order := make([]uint32, starts[size+1])
	b.eachValue(func(row, ordinal uint32) {
		order[starts[ordinal+1]] = row
		starts[ordinal+1]++
	})
	return newByValue(order, starts[:size+1], rows)
}
