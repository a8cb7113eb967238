package download

import (
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"tutti/internal/core"
	"tutti/internal/search/download/extract"
)

// flushAt is the buffer size from which it is written, in bytes.
const flushAt = 32 << 10

// bomUTF8 is the byte order mark by which spreadsheets recognize UTF-8.
const bomUTF8 = "\uFEFF"

// buffer buffers the output of a file.
type buffer struct {
	w io.Writer
	b []byte
}

// maxIdle is the capacity in bytes above which an empty buffer is released.
const maxIdle = 1 << 20

// flush writes the buffer.
func (b *buffer) flush() error {
	if len(b.b) == 0 {
		return nil
	}
	_, err := b.w.Write(b.b)
	if b.b = b.b[:0]; cap(b.b) > maxIdle {
		b.b = nil
	}
	return err
}

// reserve makes room for a large row at once: a buffer that grows while values are appended needs several times their size.
func (b *buffer) reserve(row *extract.Row) {
	size := 0
	for _, values := range row.Values {
		for _, v := range values {
			size += v.End - v.Start
		}
	}
	if size > flushAt {
		b.b = slices.Grow(b.b, size+size/64+flushAt)
	}
}

// encoder encodes a file. Its methods append to a buffer.
type encoder interface {
	head(b []byte) []byte
	row(b []byte, id string, row *extract.Row) []byte
	tail(b []byte) []byte
}

var (
	_ encoder = (*delimitedEncoder)(nil)
	_ encoder = (*objectEncoder)(nil)
	_ encoder = (*documentEncoder)(nil)
)

// delimitedEncoder encodes TSV and CSV.
type delimitedEncoder struct {
	columns   []column
	header    header
	empty     string
	bom       bool
	csv       bool
	separator byte
	end       string
}

func newDelimitedEncoder(f *file, columns []column) *delimitedEncoder {
	c := &delimitedEncoder{columns: columns, header: f.header, empty: f.empty, bom: f.bom, separator: '\t', end: "\n"}
	if f.format == CSV {
		c.csv, c.separator, c.end = true, ',', "\r\n"
	}
	return c
}

// head appends the names of the columns.
func (c *delimitedEncoder) head(b []byte) []byte {
	if c.bom {
		b = append(b, bomUTF8...)
	}
	if c.header == noHeader {
		return b
	}
	start := len(b)
	for i := range c.columns {
		if i > 0 {
			b = append(b, c.separator)
		}
		mark := len(b)
		if c.header == fieldNames {
			b = append(b, c.columns[i].name...)
		} else {
			b = append(b, c.columns[i].header...)
		}
		b = c.cell(b, mark)
	}
	return c.close(b, start)
}

// row appends the cells of a row.
func (c *delimitedEncoder) row(b []byte, id string, row *extract.Row) []byte {
	start := len(b)
	for i := range c.columns {
		if i > 0 {
			b = append(b, c.separator)
		}
		mark := len(b)
		b = c.columns[i].appendText(b, id, row)
		if len(b) == mark {
			b = append(b, c.empty...)
		}
		b = c.cell(b, mark)
	}
	return c.close(b, start)
}

func (c *delimitedEncoder) cell(b []byte, mark int) []byte {
	if c.csv {
		return quoteCell(b, mark)
	}
	return flattenCell(b, mark)
}

// close ends a row. A CSV row with a single empty field is quoted, because readers skip empty lines.
func (c *delimitedEncoder) close(b []byte, start int) []byte {
	if c.csv && len(b) == start {
		b = append(b, `""`...)
	}
	return append(b, c.end...)
}

func (c *delimitedEncoder) tail(b []byte) []byte { return b }

// frame encodes what is around the rows of JSON: nothing for lines, an array otherwise.
type frame struct {
	array bool
	rows  bool
}

func (f *frame) head(b []byte) []byte {
	if f.array {
		return append(b, '[')
	}
	return b
}

// before appends the separator before a row.
func (f *frame) before(b []byte) []byte {
	if !f.array {
		return b
	}
	if f.rows {
		b = append(b, ',')
	}
	f.rows = true
	return append(b, '\n')
}

// after appends the separator after a row.
func (f *frame) after(b []byte) []byte {
	if f.array {
		return b
	}
	return append(b, '\n')
}

func (f *frame) tail(b []byte) []byte {
	if f.array {
		return append(b, "\n]\n"...)
	}
	return b
}

// objectEncoder encodes columns as JSON: one object per row, by field name, with null for missing values, and a list if the
// document has one.
type objectEncoder struct {
	frame
	columns []column
	// arranger is set for ArrangerJSON; names is the line before the rows, empty the JSON of missing values.
	arranger     bool
	names, empty []byte
}

func newObjectEncoder(f *file, columns []column) *objectEncoder {
	o := &objectEncoder{frame: frame{array: f.format == JSON}, empty: []byte("null")}
	if f.format == ArrangerJSON {
		o.arranger, o.empty = true, quoted(f.empty)
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.hidden })
		for i := range columns {
			columns[i].key = columns[i].keyOfArranger
		}
	}
	seen := map[string]bool{}
	for _, c := range columns {
		if !seen[string(c.key)] { // names are unique in an object
			o.columns = append(o.columns, c)
		}
		seen[string(c.key)] = true
	}
	if o.arranger && f.header != noHeader {
		o.names = o.named(f.header)
	}
	return o
}

// named returns the line with the names of the columns.
func (o *objectEncoder) named(h header) []byte {
	line := []byte{'{'}
	for i, c := range o.columns {
		if i > 0 {
			line = append(line, ',')
		}
		name := c.header
		if h == fieldNames {
			name = c.name
		}
		line = append(append(line, c.headerOfArranger...), quoted(name)...)
	}
	return append(line, "}\n"...)
}

func (o *objectEncoder) head(b []byte) []byte { return append(o.frame.head(b), o.names...) }

func (o *objectEncoder) row(b []byte, id string, row *extract.Row) []byte {
	b = append(o.before(b), '{')
	for i := range o.columns {
		if i > 0 {
			b = append(b, ',')
		}
		c := &o.columns[i]
		b = append(b, c.key...)
		switch {
		case c.origin == fromID:
			b = append(b, quoted(id)...)
		case c.origin == fromNowhere, o.arranger && len(row.Values[c.valueIndex]) == 0 && !row.Lists[c.valueIndex]:
			b = append(b, o.empty...)
		default:
			b = c.appendValue(b, row)
		}
	}
	return o.after(append(b, '}'))
}

// appendValue appends the JSON of a column: a list if the document or the catalogue has one.
func (c *column) appendValue(b []byte, row *extract.Row) []byte {
	values := row.Values[c.valueIndex]
	list := c.list || row.Lists[c.valueIndex] || len(values) > 1
	if len(values) == 0 && !list {
		return append(b, "null"...)
	}
	if list {
		b = append(b, '[')
	}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = extract.AppendCompact(b, v.Of(row.Doc))
	}
	if list {
		b = append(b, ']')
	}
	return b
}

// documentEncoder encodes whole documents as JSON.
type documentEncoder struct{ frame }

func (s *documentEncoder) row(b []byte, _ string, row *extract.Row) []byte {
	b = s.before(b)
	if len(row.Values[0]) == 0 {
		b = append(b, "{}"...)
	} else {
		b = extract.AppendCompact(b, row.Values[0][0].Of(row.Doc))
	}
	return s.after(b)
}

// Format is the format of a file.
type Format uint8

// Formats of a file.
const (
	// TSV separates cells by tabs, and replaces tabs and line breaks within cells by spaces.
	TSV Format = iota
	// CSV is the format of RFC 4180.
	CSV
	// JSON is one array with an object for each row.
	JSON
	// JSONLines is an object for each row on a line of its own.
	JSONLines
	// ArrangerJSON is the format json of Arranger's clients: JSONLines after a line with the names of the columns.
	ArrangerJSON
)

// String returns the name of the format in params, which is also the extension of its files.
func (f Format) String() string {
	switch f {
	case CSV:
		return "csv"
	case JSON, ArrangerJSON:
		return "json"
	case JSONLines:
		return "jsonl"
	default:
		return "tsv"
	}
}

// delimited reports whether the format has cells.
func (f Format) delimited() bool { return f == TSV || f == CSV }

// contentType returns the media type of a file.
func (f Format) contentType() string {
	switch f {
	case CSV:
		return core.MediaCSV + "; charset=utf-8"
	case JSON:
		return core.MediaJSON
	case JSONLines, ArrangerJSON:
		return core.MediaJSONLines
	default:
		return core.MediaTSV + "; charset=utf-8"
	}
}

// formatOf returns the format with a name in params.
func formatOf(name string) (Format, bool) {
	switch strings.ToLower(name) {
	case "tsv":
		return TSV, true
	case "csv":
		return CSV, true
	case "json":
		return JSON, true
	case "jsonl", "ndjson":
		return JSONLines, true
	default:
		return 0, false
	}
}

// acceptedFormat returns the format of a media type, and whether it is that of an archive.
func acceptedFormat(mediaType string) (f Format, archive bool) {
	switch mediaType {
	case core.MediaCSV:
		return CSV, false
	case core.MediaJSON:
		return JSON, false
	case core.MediaJSONLines:
		return JSONLines, false
	case core.MediaArchive:
		return TSV, true
	default:
		return TSV, false
	}
}

// withExtension adds the extension of a format to a name without one.
func withExtension(name string, f Format) string {
	if isExtension(path.Ext(name)) {
		return name
	}
	return strings.TrimSuffix(name, ".") + "." + f.String()
}

// isExtension reports whether the suffix of a name from its last dot is a format: names may contain other dots.
func isExtension(ext string) bool {
	const longest = len(".parquet")
	return len(ext) > 1 && len(ext) <= longest &&
		!strings.ContainsFunc(ext[1:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// archiveName adds the extension of an archive.
func archiveName(name string) string {
	for _, ext := range []string{".tar.gz", ".tgz", ".tar", ".gz"} {
		if cut, ok := strings.CutSuffix(name, ext); ok && cut != "" {
			name = cut
			break
		}
	}
	return name + ".tar.gz"
}
