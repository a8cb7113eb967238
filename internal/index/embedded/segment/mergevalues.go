package segment

import (
	"bytes"
	"slices"
)

// ordinalSet is ordinals of one column, a bit for each; nil is all.
type ordinalSet []uint64

func (s ordinalSet) has(ordinal uint32) bool { return s == nil || s[ordinal/64]&(1<<(ordinal%64)) != 0 }

// used finds the values of each part's column that stand in rows which live.
func (c *columnMerger) used() []ordinalSet {
	sets := make([]ordinalSet, len(c.columns))
	for i, column := range c.columns {
		if column != nil && c.deadOf(i) != nil {
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

// keys merges the keys that are used.
func (c *columnMerger) keys(used []ordinalSet) {
	at := make([]uint32, len(c.columns))
	for i, column := range c.columns {
		if column != nil {
			c.ordinals[i] = make([]uint32, column.Size())
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
	t := tournament{advance: advance, less: func(a, b int) bool { return c.columns[a].keys[at[a]] < c.columns[b].keys[at[b]] }}
	var keys []uint64
	for i := range t.run(len(c.columns)) {
		key := c.columns[i].keys[at[i]]
		if n := len(keys); n == 0 || keys[n-1] != key {
			keys = append(keys, key)
		}
		c.ordinals[i][at[i]] = uint32(len(keys) - 1)
	}
	c.out.keys = slices.Clip(keys)
}

// texts merges the texts that are used.
func (c *columnMerger) texts(used []ordinalSet) {
	for i, column := range c.columns {
		if column != nil {
			c.ordinals[i] = make([]uint32, column.Size())
		}
	}
	out := newTextWriter(c.columns)
	c.eachText(used, func(at textPlace) {
		if at.fresh {
			out.add(at.text, at.packed)
		}
		c.ordinals[at.part][at.ordinal] = uint32(out.count() - 1)
	})
	c.out.texts = out.done()
}

// textPlace is a text of one part's column.
type textPlace struct {
	part         int
	ordinal      uint32
	text, packed []byte
	// fresh tells that the text is another than the one before.
	fresh bool
}

// eachText calls each with the texts of all parts that are used, in order.
func (c *columnMerger) eachText(used []ordinalSet, each func(at textPlace)) {
	cursors, places := make([]cursor, len(c.columns)), make([]textPlace, len(c.columns))
	for i, column := range c.columns {
		if column != nil {
			cursors[i].texts = column.texts
		}
	}
	advance := func(i int) bool {
		if c.columns[i] == nil {
			return false
		}
		for {
			text, packed, ok := cursors[i].next()
			if !ok {
				return false
			}
			if ordinal := uint32(cursors[i].at - 1); used[i].has(ordinal) {
				places[i] = textPlace{part: i, ordinal: ordinal, text: text, packed: packed}
				return true
			}
		}
	}
	t := tournament{
		advance: advance, less: func(a, b int) bool { return bytes.Compare(places[a].text, places[b].text) < 0 },
	}
	var before []byte
	first := true
	for i := range t.run(len(c.columns)) {
		at := places[i]
		if at.fresh = first || !bytes.Equal(before, at.text); at.fresh {
			before, first = append(before[:0], at.text...), false
		}
		each(at)
	}
}
