package display

import (
	"fmt"
	"io"
	"strings"
)

// columnGap separates two columns.
const columnGap = "  "

// Table writes rows below a header, in aligned columns. Each cell is made printable; an empty one is "-".
type Table struct {
	rows  [][]string
	right []bool
}

// NewTable returns a table with a header. A name that starts with ">" marks a column of numbers, aligned to the right.
func NewTable(header ...string) *Table {
	t := &Table{right: make([]bool, len(header))}
	row := make([]string, len(header))
	for i, name := range header {
		row[i], t.right[i] = strings.CutPrefix(name, ">")
	}
	t.rows = append(t.rows, row)
	return t
}

// Row adds a row. Missing cells are empty.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.right))
	for i := range row {
		row[i] = "-"
		if i < len(cells) && cells[i] != "" {
			row[i] = Printable(cells[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows without the header.
func (t *Table) Len() int { return len(t.rows) - 1 }

// Write writes the table to w.
func (t *Table) Write(w io.Writer) error {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(columnGap)
			}
			if t.right[i] {
				line.WriteString(strings.Repeat(" ", widths[i]-Width(cell)) + cell)
			} else {
				line.WriteString(pad(cell, widths[i]))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// KeyValues writes names with their values, one per line and aligned; pairs without a value are omitted. facts alternates names and values.
func KeyValues(w io.Writer, facts ...string) error {
	widest := 0
	for i := 0; i+1 < len(facts); i += 2 {
		if facts[i+1] != "" {
			widest = max(widest, Width(facts[i]))
		}
	}
	for i := 0; i+1 < len(facts); i += 2 {
		if facts[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, pad(facts[i], widest)+columnGap+Printable(facts[i+1])); err != nil {
			return err
		}
	}
	return nil
}
