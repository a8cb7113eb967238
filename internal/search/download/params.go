package download

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
)

// params is a parsed request.
type params struct {
	// arranger is set for params of Arranger's clients, whose defaults apply then.
	arranger bool
	// archive is set if the files go into one archive; fileName is the name of the archive, or of the only file; "" for none.
	archive  bool
	fileName string
	files    []file
}

// file is one requested file.
type file struct {
	format   Format
	fileName string
	// filter is the SQON, filterAt its pointer.
	filter   json.RawMessage
	filterAt string
	// columns are nil for the columns that the catalogue shows.
	columns []columnRequest
	sort    []sortRequest
	// uniqueBy is the field whose elements make rows, "" for one row per document.
	uniqueBy, uniqueByAt string
	// maxRows is the requested maximum number of documents, 0 for all.
	maxRows int64
	// empty is the text of cells without a value.
	empty  string
	bom    bool
	header header
}

// header is the kind of the first row of a file with cells.
type header uint8

const (
	displayNames header = iota
	fieldNames
	noHeader
)

// emptyOfArranger is the default text of empty cells for clients of Arranger.
const emptyOfArranger = "--"

// plainMembers are the members of params in this server's own form.
func plainMembers() []string {
	return []string{
		"format", "fileType", "type", "filters", "sqon", "columns", "sort", "fileName", "header", "bom", "maxRows", "valueWhenEmpty", "uniqueBy",
	}
}

// parseParams parses params: {files:[…]} as Arranger's clients send them, or one file in this server's own form. accept is the
// media type to use if they do not set the format.
func parseParams(raw json.RawMessage, accept string, cfg Config) (*params, error) {
	whole, err := objectOf(raw, "")
	if err != nil {
		return nil, err
	}
	o := &params{}
	accepted, archive := acceptedFormat(accept)
	p := paramsParser{format: accepted, maxColumns: cfg.MaxColumns}
	if whole.raw("files") == nil {
		if err := whole.rejectUnknown(plainMembers()); err != nil {
			return nil, err
		}
		f, err := p.file(whole)
		if err != nil {
			return nil, err
		}
		o.files, o.fileName = []file{f}, f.fileName
		o.archive = archive && !p.formatted
		return o, nil
	}
	o.arranger, p.arranger = true, true
	if o.fileName, _, err = whole.text("fileName"); err != nil {
		return nil, err
	}
	if p.format, err = p.formatOf(whole); err != nil {
		return nil, err
	}
	items, err := whole.list("files")
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return nil, invalid("/files", "is empty")
	case len(items) > cfg.MaxFiles:
		return nil, invalid("/files", fmt.Sprintf("has %d items, more than %d", len(items), cfg.MaxFiles))
	}
	for i, raw := range items {
		one, err := objectOf(raw, item("/files", i))
		if err != nil {
			return nil, err
		}
		f, err := p.file(one)
		if err != nil {
			return nil, err
		}
		o.files = append(o.files, f)
	}
	o.archive = len(o.files) > 1 || archive && !p.formatted
	if !o.archive && o.files[0].fileName != "" {
		o.fileName = o.files[0].fileName
	}
	return o, nil
}

// paramsParser parses files.
type paramsParser struct {
	arranger bool
	// format is the format of files without one; formatted is set once a format was set explicitly.
	format     Format
	formatted  bool
	maxColumns int
}

// formatOf reads the format of a file, or of all.
func (p *paramsParser) formatOf(o object) (Format, error) {
	text, name, err := o.text("format", "fileType", "type")
	if err != nil || text == "" {
		return p.format, err
	}
	f, ok := formatOf(text)
	if !ok {
		return 0, invalid(o.at(name), fmt.Sprintf("%q is none of tsv, csv, json, jsonl", shown(text)))
	}
	p.formatted = true
	if f == JSON && p.arranger && name == "fileType" {
		f = ArrangerJSON
	}
	return f, nil
}

func (p *paramsParser) file(o object) (file, error) {
	var f file
	var err error
	if f.format, err = p.formatOf(o); err != nil {
		return f, err
	}
	if f.fileName, _, err = o.text("fileName"); err != nil {
		return f, err
	}
	if f.filter, f.filterAt, err = filterOf(o); err != nil {
		return f, err
	}
	if f.columns, err = p.columns(o); err != nil {
		return f, err
	}
	if f.sort, err = sortOf(o); err != nil {
		return f, err
	}
	if f.uniqueBy, _, err = o.text("uniqueBy"); err != nil {
		return f, err
	}
	f.uniqueByAt = o.at("uniqueBy")
	if f.maxRows, err = o.count("maxRows"); err != nil {
		return f, err
	}
	if f.bom, err = o.flag("bom"); err != nil {
		return f, err
	}
	if f.header, err = headerOf(o); err != nil {
		return f, err
	}
	if p.arranger {
		f.empty = emptyOfArranger
	}
	if o.raw("valueWhenEmpty") != nil {
		f.empty, _, err = o.text("valueWhenEmpty")
	}
	return f, err
}

// filterOf returns the filter of a file, which Arranger's clients call sqon, and GraphQL calls filters.
func filterOf(o object) (json.RawMessage, string, error) {
	filters, sqon := o.raw("filters"), o.raw("sqon")
	switch {
	case filters != nil && sqon != nil:
		return nil, "", invalid(o.at("sqon"), "and filters are the same member: set only one")
	case filters != nil:
		return filters, o.at("filters"), nil
	default:
		return sqon, o.at("sqon"), nil
	}
}

func headerOf(o object) (header, error) {
	switch raw := o.raw("header"); string(raw) {
	case "", "true":
		return displayNames, nil
	case "false":
		return noHeader, nil
	case `"names"`:
		return fieldNames, nil
	default:
		return 0, invalid(o.at("header"), `is none of true, false and "names"`)
	}
}

// sortRequest is one requested sort key.
type sortRequest struct {
	at, name, mode           string
	descending, missingFirst bool
}

// sortOf reads the sort keys: names, with the prefix - for descending, or objects as in GraphQL.
func sortOf(o object) ([]sortRequest, error) {
	items, err := o.list("sort")
	if err != nil {
		return nil, err
	}
	var keys []sortRequest
	for i, raw := range items {
		at := item(o.at("sort"), i)
		var name string
		if json.Unmarshal(raw, &name) == nil && name != "" {
			name, descending := strings.CutPrefix(name, "-")
			keys = append(keys, sortRequest{at: at, name: name, descending: descending})
			continue
		}
		key, err := objectOf(raw, at)
		if err != nil {
			return nil, invalid(at, "is neither the name of a field nor an object with its fieldName")
		}
		wish, err := sortKeyOf(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, wish)
	}
	return keys, nil
}

func sortKeyOf(o object) (sortRequest, error) {
	w := sortRequest{at: o.pointer}
	var err error
	if w.name, _, err = o.text("fieldName", "field"); err != nil {
		return w, err
	}
	if w.descending, err = o.flag("desc"); err != nil {
		return w, err
	}
	if w.mode, err = oneOf(o, "mode", "", "min", "max", "sum", "avg", "median"); err != nil {
		return w, err
	}
	way, err := oneOf(o, "order", "", "asc", "desc")
	if err != nil {
		return w, err
	}
	missing, err := oneOf(o, "missing", "", "first", "last", "_first", "_last")
	w.descending = w.descending && way == "" || way == "desc"
	w.missingFirst = strings.HasSuffix(missing, "first")
	return w, err
}

// oneOf returns a string that must be one of texts, the first of which is the default.
func oneOf(o object, name string, texts ...string) (string, error) {
	text, _, err := o.text(name)
	if err != nil {
		return "", err
	}
	if slices.Contains(texts, text) {
		return text, nil
	}
	return "", invalid(o.at(name), fmt.Sprintf("%q is none of %s", shown(text), strings.Join(texts[1:], ", ")))
}

// below moves the pointers of an error about a part of params below the pointer of that part.
func below(err error, pointer string) error {
	e, ok := err.(*core.Error) //nolint:errorlint // only unwrapped errors are about params
	if !ok || e.Code != core.CodeInvalid {
		return err
	}
	moved := *e
	moved.Message = "params at " + pointer + ": " + e.Message
	moved.Violations = make([]core.Violation, len(e.Violations))
	for i, v := range e.Violations {
		v.Pointer = pointer + v.Pointer
		moved.Violations[i] = v
	}
	return &moved
}
