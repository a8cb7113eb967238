package segment

import (
	"hash/maphash"
	"slices"

	"tutti/internal/index/mapping"
	"tutti/internal/index/query"
)

// columnMerger merges the columns of one name.
type columnMerger struct {
	*merger
	// columns are those of the parts, nil where a part has none.
	columns []*Column
	// rows are those that live, in their order.
	rows []run
	out  *Column
	// ordinals gives for each part the ordinals that its own became.
	ordinals [][]uint32
}

// column merges the columns of a name; nil when no document that lives has a value. into has the spaces already.
func (m *merger) column(name string, into *Segment) *Column {
	c := columnMerger{merger: m, columns: make([]*Column, len(m.parts)), ordinals: make([][]uint32, len(m.parts))}
	newest, highest := (*Column)(nil), uint64(0)
	for i, part := range m.parts {
		column := part.columns[name]
		c.columns[i] = column
		if column == nil {
			continue
		}
		if number := part.numbers[len(part.numbers)-1]; newest == nil || number > highest {
			newest, highest = column, number
		}
	}
	c.out = &Column{field: newest.field, space: newest.space, rows: into.Rows(newest.space)}
	for i, column := range c.columns {
		if column != nil {
			c.columns[i] = column.as(newest)
		}
	}
	for _, documents := range m.runs {
		if rows := m.rowsOf(c.out.space, documents); rows.from < rows.to {
			c.rows = append(c.rows, rows)
		}
	}
	if slices.ContainsFunc(c.columns, func(column *Column) bool { return column != nil && column.bare() }) {
		return c.bare()
	}
	return c.plain()
}

// plain merges columns that have the values of each row.
func (c *columnMerger) plain() *Column {
	used := c.used()
	if c.numeric() {
		c.keys(used)
	} else {
		c.texts(used)
	}
	if c.out.Size() == 0 {
		return nil
	}
	if c.several() {
		c.multi()
	} else {
		c.single()
	}
	c.out.invert()
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

// several reports whether some row that lives has several values.
func (c *columnMerger) several() bool {
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

func (c *columnMerger) single() {
	c.out.single = make([]uint32, c.out.rows)
	at := uint32(0)
	for _, rows := range c.rows {
		column, ordinals := c.columns[rows.part], c.ordinals[rows.part]
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

func (c *columnMerger) multi() {
	c.out.offsets = make([]uint32, 1, c.out.rows+1)
	var values []uint32
	for _, rows := range c.rows {
		column, ordinals := c.columns[rows.part], c.ordinals[rows.part]
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
	c.out.values = slices.Clip(values)
}

// as returns c with the values that a newer column's type makes of them; nil when the two cannot be one, as they have the rows of
// other paths. It is c where the types are alike.
func (c *Column) as(newer *Column) *Column {
	if c.space != newer.space {
		return nil
	}
	if c.Numeric() == newer.Numeric() && (!c.Numeric() || c.field.Type == newer.field.Type && c.field.Scale == newer.field.Scale) {
		return c
	}
	g := growingColumn{
		rule:  rule{form: formText, field: newer.field, ignoreAbove: maxTermBytes},
		space: &growingSpace{path: c.space}, seed: maphash.MakeSeed(),
	}
	if newer.Numeric() {
		g.rule.form = formKey
	}
	add := func(row, ordinal uint32) {
		g.space.current = row
		if c.Numeric() {
			g.add(mapping.KindString, []byte(query.Text(c.field, c.keys[ordinal])))
		} else {
			g.add(mapping.KindString, c.Text(ordinal))
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
