package download

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
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
	c.append(w, column{
		name: name, header: c.shown[name], origin: fromDocument, valueIndex: slot, nested: c.nested(name), list: e.IsArray != nil && *e.IsArray,
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

// listed marks the columns of nested elements that do not make rows as lists.
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
	col.separator, col.display, col.dates = w.separator, w.display, dateFormatOf(w.dates)
	col.key, col.hidden = append(quoted(col.name), ':'), w.hidden
	col.keyOfArranger = append(quoted(cmp.Or(w.accessor, col.name)), ':')
	col.headerOfArranger = append(quoted(cmp.Or(w.fieldName, col.name)), ':')
	c.columns = append(c.columns, col)
}

// unknown returns the error of an unknown field name.
func (c *columnPlanner) unknown(at, name string) error {
	message := fmt.Sprintf("there is no field %q", shown(name))
	if meant := core.Suggest(plainName(name), c.model.Names()); meant != "" {
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
		o, err := objectOf(raw, "")
		if err != nil || json.Unmarshal(raw, &t) != nil || !t.Show {
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
