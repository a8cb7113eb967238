package searchtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"tutti/internal/filter/query"
	"tutti/internal/index/mapping"
)

// element is a row: a document, or a nested element of one.
type element struct {
	// id is the id of a document, path the nested path of an element.
	id, path string
	parent   *element
	children []*element
	// values are the values of fields in this row, by path.
	values map[string][]value
}

// at returns the rows of a path at or below e.
func (e *element) at(path string) []*element {
	if e.path == path {
		return []*element{e}
	}
	var rows []*element
	for _, child := range e.children {
		rows = append(rows, child.at(path)...)
	}
	return rows
}

// rowsOf parses a document into rows.
func rowsOf(fields *fieldSet, id string, doc []byte) (*element, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("reading the document %s: %w", id, err)
	}
	root := &element{id: id, values: map[string][]value{}}
	(&reader{fields: fields}).object(fields.tree, "", object, root)
	return root, nil
}

// documentsOf parses documents, and returns them sorted by id.
func documentsOf(fields *fieldSet, sources map[string]string) ([]*element, error) {
	documents := make([]*element, 0, len(sources))
	for _, id := range slices.Sorted(maps.Keys(sources)) {
		d, err := rowsOf(fields, id, []byte(sources[id]))
		if err != nil {
			return nil, err
		}
		documents = append(documents, d)
	}
	return documents, nil
}

// reader parses one document.
type reader struct {
	fields *fieldSet
}

// object reads the members of an object of f into a row.
func (r *reader) object(f *mapping.Field, path string, object map[string]any, row *element) {
	for name, member := range object {
		below, at := f, path
		for segment := range strings.SplitSeq(name, ".") {
			below, at = below.Properties[segment], join(at, segment)
			if below == nil {
				break
			}
		}
		if below != nil {
			r.value(below, at, member, row)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// value reads the value of a field.
func (r *reader) value(f *mapping.Field, path string, v any, row *element) {
	switch v := v.(type) {
	case nil:
	case []any:
		for _, member := range v {
			r.value(f, path, member, row)
		}
	case map[string]any:
		switch f.Type {
		case mapping.Object:
			r.object(f, path, v, row)
		case mapping.Nested:
			child := &element{path: path, parent: row, values: map[string][]value{}}
			row.children = append(row.children, child)
			r.object(f, path, v, child)
		default:
			for _, member := range v {
				r.value(f, path, member, row)
			}
		}
	default:
		r.scalar(f, path, fmt.Sprint(v), row)
	}
}

// scalar reads a scalar into a field and its multi-fields.
func (r *reader) scalar(f *mapping.Field, path, scalar string, row *element) {
	for name, other := range f.Fields {
		r.scalar(other, path+"."+name, scalar, row)
	}
	field := r.fields.byName[path].Field
	if field.Type == "text" {
		for _, word := range words(scalar) {
			row.values[path] = append(row.values[path], value{text: word})
		}
		return
	}
	if tooLong(f, scalar) {
		return
	}
	if v, ok := storedValue(field, scalar); ok {
		row.values[path] = append(row.values[path], v)
	}
}

// words returns the terms of an analyzed ASCII text.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// tooLong reports whether a text exceeds the ignore_above of a field.
func tooLong(f *mapping.Field, text string) bool {
	var most int
	raw, bounded := f.Params["ignore_above"]
	return bounded && json.Unmarshal(raw, &most) == nil && len(utf16.Encode([]rune(text))) > most
}

// valuesOf returns the values of a field in some rows, with duplicates.
func valuesOf(f query.Field, rows []*element) []value {
	var all []value
	for _, row := range rows {
		all = append(all, row.values[f.Path]...)
	}
	return all
}
