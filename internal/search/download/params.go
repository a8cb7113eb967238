package download

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/spelling"
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
	var err error
	whole, ok := objectOf(raw, "", &err)
	if !ok {
		return nil, invalid("", "is not a JSON object")
	}
	accepted, archive := acceptedFormat(accept)
	p := paramsParser{format: accepted, maxColumns: cfg.MaxColumns, arranger: whole.raw("files") != nil}
	o := &params{arranger: p.arranger, fileName: whole.text("fileName")}
	if !p.arranger {
		whole.rejectUnknown(plainMembers())
		o.files = []file{p.file(whole)}
		o.archive = archive && !p.formatted
		return o, err
	}
	p.format = p.formatOf(whole)
	items := whole.list("files")
	switch {
	case err != nil:
	case len(items) == 0:
		whole.fail("/files", "is empty")
	case len(items) > cfg.MaxFiles:
		whole.fail("/files", fmt.Sprintf("has %d items, more than %d", len(items), cfg.MaxFiles))
	}
	for i, raw := range items {
		if err != nil {
			return nil, err
		}
		one, ok := objectOf(raw, item("/files", i), &err)
		if !ok {
			return nil, invalid(one.pointer, "is not a JSON object")
		}
		o.files = append(o.files, p.file(one))
	}
	o.archive = len(o.files) > 1 || archive && !p.formatted
	if !o.archive && len(o.files) > 0 && o.files[0].fileName != "" {
		o.fileName = o.files[0].fileName
	}
	return o, err
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
func (p *paramsParser) formatOf(o object) Format {
	name := o.first("format", "fileType", "type")
	text := o.text(name)
	if text == "" {
		return p.format
	}
	f, ok := formatOf(text)
	if !ok {
		o.fail(o.at(name), fmt.Sprintf("%q is none of tsv, csv, json, jsonl", shown(text)))
	}
	p.formatted = true
	if f == JSON && p.arranger && name == "fileType" {
		f = ArrangerJSON
	}
	return f
}

func (p *paramsParser) file(o object) file {
	f := file{
		format: p.formatOf(o), fileName: o.text("fileName"), columns: p.columns(o), sort: sortOf(o), uniqueBy: o.text("uniqueBy"),
		uniqueByAt: o.at("uniqueBy"), maxRows: o.count("maxRows"), bom: o.flag("bom"), header: headerOf(o),
	}
	f.filter, f.filterAt = filterOf(o)
	if p.arranger {
		f.empty = emptyOfArranger
	}
	if o.raw("valueWhenEmpty") != nil {
		f.empty = o.text("valueWhenEmpty")
	}
	return f
}

// filterOf returns the filter of a file, which Arranger's clients call sqon, and GraphQL calls filters.
func filterOf(o object) (json.RawMessage, string) {
	name := o.first("filters", "sqon")
	if name == "filters" && o.raw("sqon") != nil {
		o.fail(o.at("sqon"), "and filters are the same member: set only one")
	}
	return o.raw(name), o.at(name)
}

func headerOf(o object) header {
	switch raw := o.raw("header"); string(raw) {
	case "", "true":
		return displayNames
	case "false":
		return noHeader
	case `"names"`:
		return fieldNames
	default:
		o.fail(o.at("header"), `is none of true, false and "names"`)
		return 0
	}
}

// sortRequest is one requested sort key.
type sortRequest struct {
	at, name, mode           string
	descending, missingFirst bool
}

// sortOf reads the sort keys: names, with the prefix - for descending, or objects as in GraphQL.
func sortOf(o object) []sortRequest {
	var keys []sortRequest
	for i, raw := range o.list("sort") {
		at := item(o.at("sort"), i)
		var name string
		if json.Unmarshal(raw, &name) == nil && name != "" {
			name, descending := strings.CutPrefix(name, "-")
			keys = append(keys, sortRequest{at: at, name: name, descending: descending})
			continue
		}
		key, ok := objectOf(raw, at, o.err)
		if !ok {
			o.fail(at, "is neither the name of a field nor an object with its fieldName")
			return nil
		}
		keys = append(keys, sortKeyOf(key))
	}
	return keys
}

func sortKeyOf(o object) sortRequest {
	way, missing := o.oneOf("order", "asc", "desc"), o.oneOf("missing", "first", "last", "_first", "_last")
	return sortRequest{
		at: o.pointer, name: o.text(o.first("fieldName", "field")), mode: o.oneOf("mode", "min", "max", "sum", "avg", "median"),
		descending: o.flag("desc") && way == "" || way == "desc", missingFirst: strings.HasSuffix(missing, "first"),
	}
}

// below moves the pointers of an error about a part of params below the pointer of that part.
func below(err error, pointer string) error {
	e, ok := err.(*core.Error) //nolint:errorlint // only unwrapped errors are about params
	if !ok || e.Code != core.CodeInvalid {
		return err
	}
	moved := *e
	moved.Message = "params at " + pointer + ": " + e.Message
	moved.Violations = slices.Clone(e.Violations)
	if len(moved.Violations) == 0 {
		moved.Violations = []core.Violation{{Message: e.Message}}
	}
	for i := range moved.Violations {
		moved.Violations[i].Pointer = pointer + moved.Violations[i].Pointer
	}
	return &moved
}

// columnRequest is a requested column.
type columnRequest struct {
	at string
	// names are the possible names of its field, the most likely first.
	names []string
	// fieldName and accessor are its names in the first line and in the other lines of Arranger's JSON, "" for the field's name.
	fieldName, accessor string
	// hidden is set if Arranger's JSON omits it.
	hidden bool
	// header is its title, "" for the field's display name.
	header string
	// separator separates several values in one cell.
	separator string
	// display maps values to their display texts; nil for none.
	display map[string]string
	// dates is the date format in the syntax of date-fns, "" for dates as they are.
	dates string
}

const (
	separator = ", "
	// separatorOfLists is Arranger's default for columns that are configured as lists without a jsonPath.
	separatorOfLists = ";"
	// datesOfArranger is Arranger's default format for date columns.
	datesOfArranger = "yyyy-MM-dd"
)

// columns reads the columns of a file: names, or objects as in Arranger's configuration. Nil for none.
func (p *paramsParser) columns(o object) []columnRequest {
	items := o.list("columns")
	if len(items) > p.maxColumns {
		o.fail(o.at("columns"), fmt.Sprintf("has %d items, more than %d", len(items), p.maxColumns))
		return nil
	}
	var all []columnRequest
	for i, raw := range items {
		at := item(o.at("columns"), i)
		if string(raw) == "null" { // clients of Arranger send null for a missing column
			continue
		}
		var name string
		if json.Unmarshal(raw, &name) == nil {
			all = append(all, columnRequest{at: at, names: []string{name}, separator: separator})
			continue
		}
		column, ok := objectOf(raw, at, o.err)
		if !ok {
			o.fail(at, "is neither the name of a field nor an object with its fieldName")
			return nil
		}
		wish := columnRequestOf(column, p.arranger)
		if len(wish.names) == 0 {
			o.fail(at, "has no fieldName")
		}
		all = append(all, wish)
	}
	return all
}

// columnRequestOf reads a column as in Arranger's configuration. jsonPath takes precedence over accessor and fieldName.
func columnRequestOf(o object, arranger bool) columnRequest {
	w := columnRequest{at: o.pointer, header: o.optionalText("displayName", "header", "Header"), separator: separator, dates: o.optionalText("displayFormat")}
	w.accessor, w.hidden = o.optionalText("accessor"), string(o.raw("show")) == "false"
	w.fieldName = o.optionalText("fieldName", "accessor")
	for _, member := range []string{"jsonPath", "accessor", "fieldName", "field", "id"} {
		if name := o.optionalText(member); name != "" {
			w.names = append(w.names, name)
		}
	}
	if string(o.raw("isArray")) == "true" && o.optionalText("jsonPath") == "" {
		w.separator = separatorOfLists
	}
	dated := o.optionalText("displayType") == "date" || o.optionalText("type") == "date"
	switch {
	case !dated:
		w.dates = ""
	case arranger && w.dates == "":
		w.dates = datesOfArranger
	}
	w.display = displayOf(o)
	return w
}

// displayOf reads the display texts of values.
func displayOf(o object) map[string]string {
	var values map[string]json.RawMessage
	if json.Unmarshal(o.raw("extendedDisplayValues"), &values) != nil || len(values) == 0 {
		return nil
	}
	display := make(map[string]string, len(values))
	for value, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		display[value] = text
	}
	return display
}

// plainName converts a path in GraphQL responses, or a JSONPath, to the dotted name of the field.
func plainName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "$"), ".")
	for _, part := range []string{".hits.edges[*].node", ".hits.edges[].node", ".hits.edges.node", "[*]", "[]"} {
		name = strings.ReplaceAll(name, part, "")
	}
	return name
}

// object is an object of params.
type object struct {
	// pointer is its JSON pointer.
	pointer string
	members map[string]json.RawMessage
	// err is the error of the first invalid member of all objects.
	err *error
}

// objectOf reads an object at a pointer; false if raw is not an object. Errors of its members are stored in err.
func objectOf(raw json.RawMessage, pointer string, err *error) (object, bool) {
	o := object{pointer: pointer, err: err}
	return o, json.Unmarshal(raw, &o.members) == nil && o.members != nil
}

// invalid returns the error of params at a pointer, "" for the whole.
func invalid(pointer, message string) error {
	what := "params"
	if pointer != "" {
		what += " at " + pointer
	}
	return &core.Error{
		Code: core.CodeInvalid, Message: what + ": " + message,
		Violations: []core.Violation{{Pointer: pointer, Message: message}},
	}
}

// fail records that the params are invalid at a pointer.
func (o object) fail(pointer, message string) {
	if *o.err == nil {
		*o.err = invalid(pointer, message)
	}
}

// raw returns a member, nil if it is absent or null.
func (o object) raw(name string) json.RawMessage {
	raw := bytes.TrimSpace(o.members[name])
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// at returns the pointer of a member.
func (o object) at(name string) string { return jsontext.Pointer(o.pointer, name) }

// first returns the first of names that is present, the last one if none is.
func (o object) first(names ...string) string {
	for _, name := range names {
		if o.raw(name) != nil {
			return name
		}
	}
	return names[len(names)-1]
}

// text returns a string member, "" if it is absent.
func (o object) text(name string) string {
	var text string
	if raw := o.raw(name); raw != nil && json.Unmarshal(raw, &text) != nil {
		o.fail(o.at(name), "is not a string")
	}
	return text
}

// oneOf returns a string member that must be one of texts, "" if it is absent.
func (o object) oneOf(name string, texts ...string) string {
	text := o.text(name)
	if text != "" && !slices.Contains(texts, text) {
		o.fail(o.at(name), fmt.Sprintf("%q is none of %s", shown(text), strings.Join(texts, ", ")))
	}
	return text
}

// optionalText returns the first of the named members that is a non-empty string; it ignores other values.
func (o object) optionalText(names ...string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(o.raw(name), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// flag returns a boolean member.
func (o object) flag(name string) bool {
	raw := string(o.raw(name))
	if raw != "" && raw != "true" && raw != "false" {
		o.fail(o.at(name), "is not a boolean")
	}
	return raw == "true"
}

// count returns a member that is a non-negative integer.
func (o object) count(name string) int64 {
	raw := o.raw(name)
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > 1<<53 || n != math.Trunc(n) {
		o.fail(o.at(name), "is not a whole number of 0 or more")
	}
	return int64(n)
}

// list returns the items of a member; nil if it is absent.
func (o object) list(name string) []json.RawMessage {
	var items []json.RawMessage
	if raw := o.raw(name); raw != nil && json.Unmarshal(raw, &items) != nil {
		o.fail(o.at(name), "is not a list")
	}
	return items
}

// rejectUnknown rejects members with other names.
func (o object) rejectUnknown(names []string) {
	for name := range o.members {
		if slices.Contains(names, name) {
			continue
		}
		message := fmt.Sprintf("there is no %q", shown(name))
		if meant := spelling.Suggest(name, slices.Values(names)); meant != "" {
			message += fmt.Sprintf(", did you mean %q?", meant)
		}
		o.fail(o.at(shown(name)), message)
	}
}

// item returns the pointer of a list item.
func item(list string, i int) string { return jsontext.Pointer(list, strconv.Itoa(i)) }

// maxShown is the maximum length of client input in messages, in bytes.
const maxShown = 64

func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
