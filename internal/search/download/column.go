package download

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tutti/internal/base/isodate"
	"tutti/internal/base/jsontext"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/download/extract"
	"tutti/internal/search/view"
)

// column is a column of a file.
type column struct {
	// name is the field name, header the text in the first row.
	name, header string
	origin       origin
	// valueIndex is the index of its values in a row of the document.
	valueIndex int
	separator  string
	display    map[string]string
	dates      dateFormat
	// nested are the nested paths that contain it; list is set if JSON always has a list of its values.
	nested []string
	list   bool
	// key is the JSON name with its colon; keyOfArranger and headerOfArranger are its names in the rows and in the first line of
	// Arranger's JSON.
	key, keyOfArranger, headerOfArranger []byte
	// hidden is set if Arranger's JSON omits the column.
	hidden bool
}

// origin is the source of a column's values.
type origin uint8

const (
	fromDocument origin = iota
	fromID
	fromNowhere
)

// columnPlanner resolves the columns of files to fields of a catalogue.
type columnPlanner struct {
	view  *view.View
	model *catalogue.Model
	// lenient accepts a column of the catalogue's own table that has no field, and leaves it empty.
	lenient      bool
	max          int
	shown        map[string]string
	paths        []string
	valueIndexes map[string]int
	columns      []column
}

func newColumnPlanner(view *view.View, lenient bool, most int) *columnPlanner {
	m := view.Model()
	c := &columnPlanner{view: view, model: m, lenient: lenient, max: most, shown: map[string]string{}, valueIndexes: map[string]int{}}
	for _, f := range m.Catalogue().Fields {
		c.shown[f.Name] = f.DisplayName
	}
	return c
}

// find returns the first field that one of the names refers to; false for none.
func (c *columnPlanner) find(names []string) (string, bool) {
	for _, given := range names {
		for _, name := range []string{given, plainName(given)} {
			for _, name := range []string{name, strings.ReplaceAll(name, "__", ".")} {
				if _, known := c.model.Field(name); known {
					return name, true
				}
			}
		}
	}
	return "", false
}

// add adds a requested column.
func (c *columnPlanner) add(w columnRequest) error {
	if name, known := c.find(w.names); known {
		return c.addField(w, name)
	}
	last := plainName(w.names[len(w.names)-1])
	switch {
	case last == "_id" || last == "id":
		c.append(w, column{name: last, header: last, origin: fromID})
		return nil
	case c.lenient && c.configured(last):
		c.append(w, column{name: last, header: last, origin: fromNowhere})
		return nil
	}
	return c.unknown(w.at, w.names[len(w.names)-1])
}

// addField adds the column of a field.
func (c *columnPlanner) addField(w columnRequest, name string) error {
	engine, _ := c.model.Path(name)
	path, held := extract.SourcePath(c.model.Mapping(), engine)
	if !held {
		return invalid(w.at, fmt.Sprintf("the field %q is computed only for filters and facets, and is not in documents", name))
	}
	slot, has := c.valueIndexes[path]
	if !has {
		slot = len(c.paths)
		c.valueIndexes[path] = slot
		c.paths = append(c.paths, path)
	}
	e, _ := c.model.Extended(name)
	f, _ := c.model.Field(name)
	c.append(w, column{
		dates: dateFormat{of: f.Format}, name: name, header: c.shown[name], origin: fromDocument, valueIndex: slot, nested: c.nested(name), list: e.IsArray != nil && *e.IsArray,
	})
	return nil
}

// nested returns the engine's paths of the nested elements that contain a field, the outermost first.
func (c *columnPlanner) nested(name string) []string {
	f, _ := c.model.Field(name)
	paths := make([]string, 0, len(f.Nested))
	for _, nested := range f.Nested {
		path, ok := c.model.Path(nested)
		if !ok {
			path = nested // above the nesting prefix, where fields have no other name
		}
		paths = append(paths, path)
	}
	return paths
}

// listed marks columns as lists if they belong to nested elements that do not make rows.
func (c *columnPlanner) listed(rows []string) {
	for i := range c.columns {
		col := &c.columns[i]
		col.list = col.list || slices.ContainsFunc(col.nested, func(path string) bool { return !slices.Contains(rows, path) })
	}
}

func (c *columnPlanner) append(w columnRequest, col column) {
	if w.header != "" {
		col.header = w.header
	}
	col.separator, col.display, col.dates.layouts = w.separator, w.display, dateLayoutsOf(w.dates)
	col.key, col.hidden = append(quoted(col.name), ':'), w.hidden
	col.keyOfArranger = append(quoted(cmp.Or(w.accessor, col.name)), ':')
	col.headerOfArranger = append(quoted(cmp.Or(w.fieldName, col.name)), ':')
	c.columns = append(c.columns, col)
}

// unknown returns the error of an unknown field name.
func (c *columnPlanner) unknown(at, name string) error {
	message := fmt.Sprintf("there is no field %q", shown(name))
	if meant := spelling.Suggest(plainName(name), c.model.Names()); meant != "" {
		message += fmt.Sprintf(", did you mean %q?", meant)
	}
	return invalid(at, message)
}

// tableColumn is the relevant part of a column of the catalogue's table.
type tableColumn struct {
	FieldName string `json:"fieldName"`
	Show      bool   `json:"show"`
}

// configured reports whether the catalogue's table has a column of a name.
func (c *columnPlanner) configured(name string) bool {
	items, _ := tableOf(c.model)
	for _, raw := range items {
		var t tableColumn
		if json.Unmarshal(raw, &t) == nil && t.FieldName == name {
			return true
		}
	}
	return false
}

// tableOf returns the validated columns of the catalogue's table.
func tableOf(m *catalogue.Model) ([]json.RawMessage, error) {
	var table struct {
		Columns []json.RawMessage `json:"columns"`
	}
	if len(m.Definition().Table) == 0 {
		return nil, nil
	}
	err := json.Unmarshal(m.Definition().Table, &table)
	return table.Columns, err
}

// addShown adds the columns that the catalogue's table shows, or else all fields with values.
func (c *columnPlanner) addShown(arranger bool) error {
	items, err := tableOf(c.model)
	if err != nil {
		return core.WrapError(core.CodeInternal, "reading the table of the catalogue", err)
	}
	for _, raw := range items {
		var t tableColumn
		o, ok := objectOf(raw, "", nil)
		if !ok || json.Unmarshal(raw, &t) != nil || !t.Show {
			continue
		}
		w := columnRequestOf(o, arranger)
		if name, known := c.find(w.names); known {
			if err := c.addField(w, name); err != nil {
				continue
			}
		}
	}
	if len(c.columns) == 0 {
		c.addLeaves(arranger)
	}
	if len(c.columns) > c.max {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the catalogue has %d columns, more than %d", len(c.columns), c.max),
			Hint: "name the columns that you need in columns",
		}
	}
	return nil
}

// addLeaves adds all fields with values that documents hold under their own names.
func (c *columnPlanner) addLeaves(arranger bool) {
	for _, f := range c.model.Catalogue().Fields {
		field, leaf := c.view.Field(f.Name)
		if !leaf {
			continue
		}
		own := f.Name
		if prefix := c.model.Definition().NestingPrefix; prefix != "" {
			own = prefix + "." + own
		}
		path, held := extract.SourcePath(c.model.Mapping(), field.Path)
		if !held || path != own { // an alias or a multi-field repeats another field
			continue
		}
		w := columnRequest{names: []string{f.Name}, separator: separator}
		if arranger && f.Type == "date" {
			w.dates = datesOfArranger
		}
		_ = c.addField(w, f.Name) // the field exists
	}
}

// rows returns the nested paths, from the outermost, whose elements make rows; none for a field outside of nested elements.
func (c *columnPlanner) rows(uniqueBy, at string) ([]string, error) {
	if uniqueBy == "" {
		return nil, nil
	}
	name, known := c.find([]string{uniqueBy})
	if !known {
		return nil, c.unknown(at, uniqueBy)
	}
	return c.nested(name), nil
}

// quoted returns a string as JSON.
func quoted(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`)
	}
	return raw
}

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

// isPlainNumber reports whether a cell is a decimal number with a sign; it may have leading zeros.
func isPlainNumber(cell []byte) bool {
	return len(cell) > 1 && cell[1] >= '0' && cell[1] <= '9' && jsontext.IsNumber("1"+string(cell[1:]))
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
	quotes := bytes.Count(cell, []byte{'"'})
	b = slices.Grow(b, quotes+2)[:len(b)+quotes+2]
	to := len(b) - 1
	b[to] = '"'
	for i := mark + len(cell) - 1; i >= mark; i-- { // the cell moves to the end, where nothing is overwritten that was not moved
		to--
		if b[to] = b[i]; b[i] == '"' {
			to--
			b[to] = '"'
		}
	}
	b[mark] = '"'
	return b
}

// insert inserts a byte.
func insert(b []byte, at int, c byte) []byte {
	b = append(b, 0)
	copy(b[at+1:], b[at:])
	b[at] = c
	return b
}

// dateFormat formats dates in a format of date-fns (https://date-fns.org/docs/format), which is nearly Unicode's (UTS 35). The
// zero value leaves dates unchanged, and so does a format with an unknown part: ISO 8601 is always valid.
type dateFormat struct {
	// layouts are layouts of Go's time package, or texts with the prefix "'".
	layouts []string
	// of is the format of the field's values, nil for the default.
	of *isodate.Format
}

// dateLayouts maps the supported format parts to layouts of Go's time package.
func dateLayouts() map[string]string {
	return map[string]string{
		"yyyy": "2006", "y": "2006", "uuuu": "2006", "yy": "06", "MMMM": "January", "LLLL": "January", "MMM": "Jan", "LLL": "Jan",
		"MM": "01", "LL": "01", "M": "1", "L": "1", "dd": "02", "d": "2", "EEEE": "Monday", "EEE": "Mon", "EE": "Mon", "E": "Mon",
		"HH": "15", "hh": "03", "h": "3", "mm": "04", "m": "4", "ss": "05", "s": "5", "SSS": ".000", "a": "PM", "aa": "PM",
		"XXX": "Z07:00", "xxx": "-07:00", "XX": "Z0700", "xx": "-0700",
	}
}

// dateLayoutsOf returns the layouts of a format.
func dateLayoutsOf(format string) (layouts []string) {
	known := dateLayouts()
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\'':
			text, end := quotedText(format, i)
			layouts = append(layouts, "'"+text)
			i = end
		case isLetter(c):
			end := i
			for end < len(format) && format[end] == c {
				end++
			}
			layout, ok := known[format[i:end]]
			if !ok {
				return nil
			}
			layouts = append(layouts, layout)
			i = end
		default:
			layouts = append(layouts, "'"+format[i:i+1])
			i++
		}
	}
	return layouts
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// quotedText returns the text between the quotes that start at i, where two quotes are one, and the offset after them.
func quotedText(format string, i int) (string, int) {
	if strings.HasPrefix(format[i:], "''") {
		return "'", i + 2
	}
	var b strings.Builder
	for i++; i < len(format); i++ {
		if format[i] != '\'' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 == len(format) || format[i+1] != '\'' {
			return b.String(), i + 1
		}
		b.WriteByte('\'')
		i++
	}
	return b.String(), i
}

// set reports whether dates are reformatted.
func (f dateFormat) set() bool { return len(f.layouts) > 0 }

// append appends a value in the format, in UTC; a value that is not a date is appended unchanged.
func (f dateFormat) append(dst []byte, text string, number bool) []byte {
	at, ok := f.parse(text, number)
	if !ok {
		return append(dst, text...)
	}
	for _, layout := range f.layouts {
		switch layout[0] {
		case '\'':
			dst = append(dst, layout[1:]...)
		case '.':
			// Go supports fractions of a second only after a point.
			dst = append(dst, at.Format(layout)[1:]...)
		default:
			dst = at.AppendFormat(dst, layout)
		}
	}
	return dst
}

// parse returns the instant of a value in a document, read as the engine reads it: by the format of the field, or else as ISO 8601 or a whole number of
// milliseconds since 1970, of which four digits are a year.
func (f dateFormat) parse(text string, number bool) (at time.Time, ok bool) {
	if f.of != nil {
		if at, _, _, ok = f.of.Parse(text); ok {
			return at, true
		}
		if _, unread := f.of.Unread(); !unread {
			return at, false
		}
	}
	if number && !whole(text) {
		return at, false
	}
	at, _, err := sqon.ParseDate(text)
	return at.UTC(), err == nil
}

// whole reports whether the text of a number is that of an integer.
func whole(text string) bool { return !strings.ContainsAny(text, ".eE") }
