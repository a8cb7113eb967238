package segment

import "slices"

// mergeInverted merges columns that store only the rows of each value.
func (c *columnMerger) mergeInverted() *Column {
	moved := c.newRows()
	out := newDictionaryBuilder(c.columns)
	var order []uint32
	starts := []uint32{0}
	var text []byte
	flush := func() {
		from := starts[len(starts)-1]
		if rows := order[from:]; len(rows) > 0 {
			if !slices.IsSorted(rows) {
				slices.Sort(rows)
			}
			out.add(text, nil)
			starts = append(starts, uint32(len(order)))
		}
	}
	c.eachText(make([]ordinalSet, len(c.columns)), func(at partText) {
		if at.fresh {
			flush()
			text = append(text[:0], at.text...)
		}
		c.columns[at.part].eachRow(at.ordinal, func(row uint32) {
			if to := moved[at.part][row]; to != none {
				order = append(order, to)
			}
		})
	})
	flush()
	if len(order) == 0 {
		return nil
	}
	c.out.texts = out.done()
	c.out.setRowsByValue(slices.Clip(order), starts)
	return c.out
}

// newRows returns for each part the new number of each row, none for deleted rows.
func (c *columnMerger) newRows() [][]uint32 {
	moved := make([][]uint32, len(c.columns))
	for i, column := range c.columns {
		if column != nil {
			moved[i] = make([]uint32, column.rows)
			for row := range moved[i] {
				moved[i][row] = none
			}
		}
	}
	at := uint32(0)
	for _, rows := range c.rows {
		for row := rows.from; row < rows.to; row++ {
			if moved[rows.part] != nil {
				moved[rows.part][row] = at
			}
			at++
		}
	}
	return moved
}
