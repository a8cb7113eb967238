package download

import (
	"bytes"
	"strings"

	"tutti/internal/jsontext"
	"tutti/internal/search/download/extract"
)

// appendText appends the text of a cell: the texts of all values, "" for none. An object is written as JSON.
func (c *column) appendText(dst []byte, id string, row *extract.Row) []byte {
	switch c.origin {
	case fromID:
		return append(dst, id...)
	case fromNowhere:
		return dst
	default:
	}
	for i, v := range row.Values[c.valueIndex] {
		if i > 0 {
			dst = append(dst, c.separator...)
		}
		raw := v.Of(row.Doc)
		switch {
		case raw[0] == '{':
			dst = extract.AppendCompact(dst, raw)
		case c.display != nil || c.dates.set():
			dst = c.appendShown(dst, raw)
		default:
			dst = jsontext.AppendText(dst, raw)
		}
	}
	return dst
}

// appendShown appends a value with the display text of the column.
func (c *column) appendShown(dst, raw []byte) []byte {
	mark := len(dst)
	dst = jsontext.AppendText(dst, raw)
	if text, ok := c.display[string(dst[mark:])]; ok {
		return append(dst[:mark], text...)
	}
	if c.dates.set() {
		text := string(dst[mark:])
		return c.dates.append(dst[:mark], text, raw[0] != '"')
	}
	return dst
}

// isFormula reports whether a spreadsheet could treat a cell as a formula
// (https://owasp.org/www-community/attacks/CSV_Injection): it starts with one of = + - @, also after white space or in full
// width, or with a tab or a line break. Numbers are not formulas, nor are cells of dashes only, which stand for missing values.
func isFormula(cell []byte) bool {
	if len(cell) == 0 {
		return false
	}
	if c := cell[0]; c > '@' && c < 0x80 || c >= '0' && c <= '9' { // the common case
		return false
	}
	if c := cell[0]; c == '\t' || c == '\r' || c == '\n' {
		return true
	}
	rest := cell
	for len(rest) > 0 && rest[0] <= ' ' {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '=', '@':
		return true
	case '+', '-':
		return !isPlainNumber(rest) && len(bytes.Trim(rest, "-")) > 0
	case 0xEF: // full-width forms
		return bytes.HasPrefix(rest, []byte("＝")) || bytes.HasPrefix(rest, []byte("＋")) ||
			bytes.HasPrefix(rest, []byte("－")) || bytes.HasPrefix(rest, []byte("＠"))
	default:
		return false
	}
}

// isPlainNumber reports whether a cell is a decimal number.
func isPlainNumber(cell []byte) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(cell) && cell[i] >= '0' && cell[i] <= '9' {
			i++
		}
		return i > from
	}
	if cell[0] == '-' || cell[0] == '+' {
		i++
	}
	if !digits() {
		return false
	}
	if i < len(cell) && cell[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(cell) && (cell[i] == 'e' || cell[i] == 'E') {
		if i++; i < len(cell) && (cell[i] == '+' || cell[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(cell)
}

// formulaGuard is the prefix for cells that a spreadsheet could treat as a formula: it shows the rest as text.
const formulaGuard = '\''

// flattenCell converts b[mark:] to the cell of a TSV, without characters that separate cells or rows.
func flattenCell(b []byte, mark int) []byte {
	cell := b[mark:]
	for i, c := range cell {
		if c == '\t' || c == '\n' || c == '\r' {
			cell[i] = ' '
		}
	}
	if isFormula(cell) || len(cell) > 0 && cell[0] == '"' { // spreadsheets treat a leading quote as the start of a quoted cell
		b = insert(b, mark, formulaGuard)
	}
	return b
}

// quoteCell converts b[mark:] to the field of a CSV (RFC 4180, section 2).
func quoteCell(b []byte, mark int) []byte {
	if isFormula(b[mark:]) {
		b = insert(b, mark, formulaGuard)
	}
	cell := b[mark:]
	if len(cell) == 0 || !bytes.ContainsAny(cell, ",\"\r\n") && cell[0] != ' ' && cell[len(cell)-1] != ' ' {
		return b
	}
	text := strings.ReplaceAll(string(cell), `"`, `""`)
	b = append(b[:mark], '"')
	return append(append(b, text...), '"')
}

// insert inserts a byte.
func insert(b []byte, at int, c byte) []byte {
	b = append(b, 0)
	copy(b[at+1:], b[at:])
	b[at] = c
	return b
}
