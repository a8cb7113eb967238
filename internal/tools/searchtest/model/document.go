package model

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

// Element is a row: a document, or a nested element of one.
type Element struct {
	// ID is the id of a document, path the nested path of an element.
	ID, Path string
	parent   *Element
	children []*Element
	// Values are the values of fields in this row, by path.
	Values map[string][]Value
}

// At returns the rows of a path at or below e.
func (e *Element) At(path string) []*Element {
	if e.Path == path {
		return []*Element{e}
	}
	var rows []*Element
	for _, child := range e.children {
		rows = append(rows, child.At(path)...)
	}
	return rows
}

// rowsOf parses a document into rows.
func rowsOf(fields *FieldSet, id string, doc []byte) (*Element, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("reading the document %s: %w", id, err)
	}
	root := &Element{ID: id, Values: map[string][]Value{}}
	(&reader{fields: fields}).object(fields.Tree, "", object, root)
	return root, nil
}

// DocumentsOf parses documents, and returns them sorted by id.
func DocumentsOf(fields *FieldSet, sources map[string]string) ([]*Element, error) {
	documents := make([]*Element, 0, len(sources))
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
	fields *FieldSet
}

// object reads the members of an object of f into a row.
func (r *reader) object(f *mapping.Field, path string, object map[string]any, row *Element) {
	for name, member := range object {
		below, at := f, path
		for segment := range strings.SplitSeq(name, ".") {
			below, at = below.Properties[segment], Join(at, segment)
			if below == nil {
				break
			}
		}
		if below != nil {
			r.value(below, at, member, row)
		}
	}
}

// Join returns the path of a member of the container at path, "" for the root.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// value reads the value of a field.
func (r *reader) value(f *mapping.Field, path string, v any, row *Element) {
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
			child := &Element{Path: path, parent: row, Values: map[string][]Value{}}
			row.children = append(row.children, child)
			r.object(f, path, v, child)
		default:
			if end, ranged := EndOf(r.fields.ByName[path].Field); ranged {
				row.Values[path] = append(row.Values[path], newRange(end, v, ""))
				return
			}
			for _, member := range v {
				r.value(f, path, member, row)
			}
		}
	default:
		r.scalar(f, path, fmt.Sprint(v), row)
	}
}

// scalar reads a scalar into a field and its multi-fields.
func (r *reader) scalar(f *mapping.Field, path, scalar string, row *Element) {
	for name, other := range f.Fields {
		r.scalar(other, path+"."+name, scalar, row)
	}
	field := r.fields.ByName[path].Field
	if end, ranged := EndOf(field); ranged {
		row.Values[path] = append(row.Values[path], newRange(end, nil, scalar))
		return
	}
	if ClassOf(field.Type) == AnalyzedClass {
		for _, word := range words(scalar) {
			row.Values[path] = append(row.Values[path], Value{Text: word})
		}
		return
	}
	if tooLong(f, scalar) {
		return
	}
	if r.fields.Lowercased(path) {
		scalar = strings.ToLower(scalar)
	}
	if v, ok := StoredValue(field, scalar); ok {
		row.Values[path] = append(row.Values[path], v)
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

// ValuesOf returns the values of a field in some rows, with duplicates.
func ValuesOf(f query.Field, rows []*Element) []Value {
	var all []Value
	for _, row := range rows {
		all = append(all, row.Values[f.Path]...)
	}
	return all
}
