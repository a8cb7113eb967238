package display

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"tutti/internal/base/printable"
)

// columnGap separates two columns.
const columnGap = "  "

// Table writes rows below a header, in aligned columns. Each cell is made printable; an empty one is "-".
type Table struct {
	writer  table.Writer
	columns int
}

// NewTable returns a table with a header. A name that starts with ">" marks a column of numbers, aligned to the right.
func NewTable(header ...string) *Table {
	t := &Table{writer: newWriter(), columns: len(header)}
	row, columns := make(table.Row, len(header)), make([]table.ColumnConfig, len(header))
	for i, name := range header {
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignLeft}
		name, numbers := strings.CutPrefix(name, ">")
		if numbers {
			columns[i].Align = text.AlignRight
		}
		columns[i].AlignHeader = columns[i].Align
		row[i] = name
	}
	t.writer.AppendHeader(row)
	t.writer.SetColumnConfigs(columns)
	return t
}

// newWriter returns a writer of aligned columns without borders.
func newWriter() table.Writer {
	w := table.NewWriter()
	w.SetStyle(table.Style{
		Box:    table.BoxStyle{PaddingRight: columnGap},
		Format: table.FormatOptions{Header: text.FormatDefault},
	})
	w.SuppressTrailingSpaces()
	return w
}

// Row adds a row. Missing cells are empty.
func (t *Table) Row(cells ...string) {
	row := make(table.Row, t.columns)
	for i := range row {
		row[i] = "-"
		if i < len(cells) && cells[i] != "" {
			row[i] = printable.Line(cells[i])
		}
	}
	t.writer.AppendRow(row)
}

// Write writes the table to w.
func (t *Table) Write(w io.Writer) error {
	return write(w, t.writer)
}

// KeyValues writes names with their values, one per line and aligned; pairs without a value are omitted. facts alternates names and values.
func KeyValues(w io.Writer, facts ...string) error {
	pairs := newWriter()
	for i := 0; i+1 < len(facts); i += 2 {
		if facts[i+1] != "" {
			pairs.AppendRow(table.Row{facts[i], printable.Line(facts[i+1])})
		}
	}
	return write(w, pairs)
}

func write(w io.Writer, t table.Writer) error {
	lines := t.Render()
	if lines == "" {
		return nil
	}
	_, err := io.WriteString(w, lines+"\n")
	return err
}
