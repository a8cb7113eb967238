package segment

import (
	"hash/maphash"
	"slices"

	"tutti/internal/filter/query"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment/fieldvalue"
)

// columnMerger merges the columns of one name.
type columnMerger struct {
	*merger
	// columns are those of the parts, nil where a part has none.
	columns []*Column
	// rows are those that are not deleted, in order.
	rows []run
	out  *Column
	// newOrdinals maps the ordinals of each part to those of out.
	newOrdinals [][]uint32
}

// newestColumn returns the column of a name in the part with the latest document.
func (m *merger) newestColumn(name string) *Column {
	newest, highest := (*Column)(nil), uint64(0)
	for _, part := range m.parts {
		column := part.columns[name]
		if column == nil {
			continue
		}
		if number := part.numbers[len(part.numbers)-1]; newest == nil || number > highest {
			newest, highest = column, number
		}
	}
	return newest
}

// mergeColumn merges the columns of a name. It returns nil when no remaining document has a value. The sections of packed texts are
// then written already, by its dictionary.Builder.
func (m *merger) mergeColumn(name string) *Column {
	c := columnMerger{merger: m, columns: make([]*Column, len(m.parts)), newOrdinals: make([][]uint32, len(m.parts))}
	newest := m.newestColumn(name)
	for i, part := range m.parts {
		c.columns[i] = part.columns[name]
	}
	c.out = &Column{field: newest.field, space: newest.space, byValue: byValue{rows: m.rows[newest.space]}}
	for i, column := range c.columns {
		if column != nil {
			c.columns[i] = converted(column, newest)
		}
	}
	for _, documents := range m.runs {
		if rows := m.rowsOf(c.out.space, documents); rows.from < rows.to {
			c.rows = append(c.rows, rows)
		}
	}
	if slices.ContainsFunc(c.columns, func(column *Column) bool { return column != nil && column.invertedOnly() }) {
		return c.mergeInverted()
	}
	return c.mergeByRow()
}

// mergeByRow merges columns that store the values by row.
func (c *columnMerger) mergeByRow() *Column {
	used := c.usedOrdinals()
	if c.numeric() {
		c.mergeKeys(used)
	} else {
		c.mergeTexts(used)
	}
	if c.out.Size() == 0 {
		return nil
	}
	if c.multiValued() {
		c.mergeMulti()
	} else {
		c.mergeSingle()
	}
	c.newOrdinals = nil
	c.out.byValue = c.out.invert(c.out.rows, int(c.out.Size()))
	return c.out
}

func (c *columnMerger) numeric() bool {
	for _, column := range c.columns {
		if column != nil {
			return column.Numeric()
		}
	}
	return false
}

// multiValued reports whether a remaining row has several values.
func (c *columnMerger) multiValued() bool {
	for _, rows := range c.rows {
		column := c.columns[rows.part]
		if column == nil || column.single != nil {
			continue
		}
		for row := rows.from; row < rows.to; row++ {
			if column.offsets[row+1]-column.offsets[row] > 1 {
				return true
			}
		}
	}
	return false
}

func (c *columnMerger) mergeSingle() {
	c.out.single = make([]uint32, c.out.rows)
	at := uint32(0)
	for _, rows := range c.rows {
		column, ordinals := c.columns[rows.part], c.newOrdinals[rows.part]
		out := c.out.single[at:]
		at += rows.to - rows.from
		switch {
		case column == nil:
		case column.single != nil:
			for i, o := range column.single[rows.from:rows.to] {
				if o > 0 {
					out[i] = ordinals[o-1] + 1
				}
			}
		default:
			for row := rows.from; row < rows.to; row++ {
				if start := column.offsets[row]; start < column.offsets[row+1] {
					out[row-rows.from] = ordinals[column.values[start]] + 1
				}
			}
		}
	}
}

func (c *columnMerger) mergeMulti() {
	c.out.offsets = make([]uint32, 1, c.out.rows+1)
	values := make([]uint32, 0, c.valueCount())
	for _, rows := range c.rows {
		column, ordinals := c.columns[rows.part], c.newOrdinals[rows.part]
		for row := rows.from; row < rows.to; row++ {
			switch {
			case column == nil:
			case column.single != nil:
				if o := column.single[row]; o > 0 {
					values = append(values, ordinals[o-1])
				}
			default:
				for _, o := range column.values[column.offsets[row]:column.offsets[row+1]] {
					values = append(values, ordinals[o])
				}
			}
			c.out.offsets = append(c.out.offsets, uint32(len(values)))
		}
	}
	c.out.values = values
}

// valueCount returns the number of values of the remaining rows.
func (c *columnMerger) valueCount() int {
	n := 0
	for _, rows := range c.rows {
		switch column := c.columns[rows.part]; {
		case column == nil:
		case column.single != nil:
			for _, o := range column.single[rows.from:rows.to] {
				n += int(min(o, 1))
			}
		default:
			n += int(column.offsets[rows.to] - column.offsets[rows.from])
		}
	}
	return n
}

// converted returns c with its values converted to the type of a newer column, c itself when the types are compatible. It returns
// nil when the columns have the rows of different paths and cannot be merged.
func converted(c, newer *Column) *Column {
	if c.space != newer.space {
		return nil
	}
	if c.Numeric() == newer.Numeric() && (!c.Numeric() || c.field.Type == newer.field.Type && c.field.Scale == newer.field.Scale) {
		return c
	}
	g := columnBuilder{
		rule:  fieldvalue.Unlimited(newer.field),
		space: &rowSpaceBuilder{path: c.space}, seed: maphash.MakeSeed(),
	}
	if newer.Numeric() {
		g.rule.Form = fieldvalue.FormKey
	}
	add := func(row, ordinal uint32) {
		g.space.current = row
		if c.Numeric() {
			g.add(document.KindString, []byte(query.Text(c.field, c.keys[ordinal])))
		} else {
			g.add(document.KindString, c.Text(ordinal))
		}
	}
	for row, o := range c.single {
		if o > 0 {
			add(uint32(row), o-1)
		}
	}
	for row := range max(0, len(c.offsets)-1) {
		for _, o := range c.values[c.offsets[row]:c.offsets[row+1]] {
			add(uint32(row), o)
		}
	}
	return g.column(c.rows)
}

// mergeInverted merges columns that store only the rows of each value.
func (c *columnMerger) mergeInverted() *Column {
	moved := c.newRows()
	out := c.newDictionary()
	var order []uint32
	starts := []uint32{0}
	var text []byte
	flush := func() {
		from := starts[len(starts)-1]
		if rows := order[from:]; len(rows) > 0 {
			if !slices.IsSorted(rows) {
				slices.Sort(rows)
			}
			out.Add(text, nil)
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
	c.out.texts = out.Done()
	c.out.byValue = newByValue(slices.Clip(order), starts, c.out.rows)
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
