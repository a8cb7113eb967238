package segment

import (
	"bytes"
	"iter"
	"slices"

	"tutti/internal/base/heap"
	"tutti/internal/index/embedded/segment/dictionary"
)

// ordinalSet is a bitmap of ordinals of one column; nil contains all.
type ordinalSet []uint64

func (s ordinalSet) has(ordinal uint32) bool { return s == nil || s[ordinal/64]&(1<<(ordinal%64)) != 0 }

// usedOrdinals returns the values of each part's column that remaining rows have.
func (c *columnMerger) usedOrdinals() []ordinalSet {
	sets := make([]ordinalSet, len(c.columns))
	for i, column := range c.columns {
		if column != nil && c.deletedOf(i) != nil {
			sets[i] = make(ordinalSet, (column.Size()+63)/64)
		}
	}
	for _, rows := range c.rows {
		column, set := c.columns[rows.part], sets[rows.part]
		if set == nil {
			continue
		}
		if column.single != nil {
			for _, o := range column.single[rows.from:rows.to] {
				if o > 0 {
					set[(o-1)/64] |= 1 << ((o - 1) % 64)
				}
			}
			continue
		}
		for _, o := range column.values[column.offsets[rows.from]:column.offsets[rows.to]] {
			set[o/64] |= 1 << (o % 64)
		}
	}
	return sets
}

// mergeKeys merges the used keys.
func (c *columnMerger) mergeKeys(used []ordinalSet) {
	at := make([]uint32, len(c.columns))
	for i, column := range c.columns {
		if column != nil {
			c.newOrdinals[i] = make([]uint32, column.Size())
			at[i] = none // before the first
		}
	}
	advance := func(i int) bool {
		if c.columns[i] == nil {
			return false
		}
		for at[i]++; at[i] < c.columns[i].Size(); at[i]++ {
			if used[i].has(at[i]) {
				return true
			}
		}
		return false
	}
	less := func(a, b int) bool { return c.columns[a].keys[at[a]] < c.columns[b].keys[at[b]] }
	var keys []uint64
	for i := range kWayMerge(len(c.columns), advance, less) {
		key := c.columns[i].keys[at[i]]
		if n := len(keys); n == 0 || keys[n-1] != key {
			keys = append(keys, key)
		}
		c.newOrdinals[i][at[i]] = uint32(len(keys) - 1)
	}
	c.out.keys = slices.Clip(keys)
}

// mergeTexts merges the used texts.
func (c *columnMerger) mergeTexts(used []ordinalSet) {
	for i, column := range c.columns {
		if column != nil {
			c.newOrdinals[i] = make([]uint32, column.Size())
		}
	}
	out := c.newDictionary()
	c.eachText(used, func(at partText) {
		if at.fresh {
			out.Add(at.text, at.packed)
		}
		c.newOrdinals[at.part][at.ordinal] = uint32(out.Count() - 1)
	})
	c.out.texts = out.Done()
}

// newDictionary returns a builder for the texts of all parts, which writes them to the file if they are many.
func (c *columnMerger) newDictionary() dictionary.Builder {
	texts := 0
	for _, column := range c.columns {
		if column != nil {
			texts += column.texts.Size()
		}
	}
	return dictionary.NewBuilder(texts, c.merger.out)
}

// partText is a text of one part's column.
type partText struct {
	part         int
	ordinal      uint32
	text, packed []byte
	// fresh is set when the text differs from the one before.
	fresh bool
}

// eachText calls each with the used texts of all parts, in ascending order.
func (c *columnMerger) eachText(used []ordinalSet, each func(at partText)) {
	cursors, places := make([]*dictionary.Reader, len(c.columns)), make([]partText, len(c.columns))
	for i, column := range c.columns {
		if column != nil {
			cursors[i] = column.Texts()
		}
	}
	advance := func(i int) bool {
		if c.columns[i] == nil {
			return false
		}
		for {
			text, packed, ok := cursors[i].Next()
			if !ok {
				return false
			}
			if ordinal := cursors[i].Ordinal(); used[i].has(ordinal) {
				places[i] = partText{part: i, ordinal: ordinal, text: text, packed: packed}
				return true
			}
		}
	}
	less := func(a, b int) bool { return bytes.Compare(places[a].text, places[b].text) < 0 }
	var before []byte
	first := true
	for i := range kWayMerge(len(c.columns), advance, less) {
		at := places[i]
		if at.fresh = first || !bytes.Equal(before, at.text); at.fresh {
			before, first = append(before[:0], at.text...), false
		}
		each(at)
	}
}

// kWayMerge yields, for each item of n sorted sources in ascending order, its source. advance moves a source to its next item, false
// at the end; each source must be before its first item. less compares the current items of two sources.
func kWayMerge(n int, advance func(source int) bool, less func(a, b int) bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		var left []int
		for i := range n {
			if advance(i) {
				left = append(left, i)
			}
		}
		heap.Init(left, less)
		for len(left) > 0 && yield(left[0]) {
			if advance(left[0]) {
				heap.Fix(left, less)
			} else {
				left = heap.Pop(left, less)
			}
		}
	}
}
