package graph

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// What the configuration of a catalogue is where nobody says, as Arranger's clients expect it.
const (
	defaultMaxRows   = 0 // as many as there are
	defaultRowID     = "id"
	defaultShown     = 10
	typeObject       = "object"
	typeNested       = "nested"
	undescribedField = "* "
)

// described is what clients are told of a field, whether it is configured or not.
type described struct {
	DisplayName        string                     `json:"displayName"`
	DisplayType        string                     `json:"displayType"`
	DisplayValues      map[string]json.RawMessage `json:"displayValues"`
	FieldName          string                     `json:"fieldName"`
	IsActive           bool                       `json:"isActive"`
	IsArray            bool                       `json:"isArray"`
	PrimaryKey         bool                       `json:"primaryKey"`
	QuickSearchEnabled bool                       `json:"quickSearchEnabled"`
	RangeStep          float64                    `json:"rangeStep"`
	Type               string                     `json:"type"`
	Unit               *string                    `json:"unit"`
	Description        string                     `json:"description,omitempty"`
}

// describedFields returns all fields of a catalogue in the mapping's order.
func (s *served) describedFields() []described {
	var all []described
	for _, f := range s.model.Catalogue().Fields {
		e, _ := s.model.Extended(f.Name)
		d := described{
			DisplayName: f.DisplayName, DisplayType: cmp.Or(e.DisplayType, f.Type), DisplayValues: e.DisplayValues, FieldName: f.Name,
			IsActive: is(e.IsActive), IsArray: is(e.IsArray), PrimaryKey: is(e.PrimaryKey), QuickSearchEnabled: is(e.QuickSearchEnabled),
			Type: f.Type, Description: f.Description,
		}
		if d.DisplayValues == nil {
			d.DisplayValues = map[string]json.RawMessage{}
		}
		if e.RangeStep != nil {
			d.RangeStep = *e.RangeStep
		}
		if f.Unit != "" {
			d.Unit = &f.Unit
		}
		all = append(all, d)
	}
	return all
}

func is(flag *bool) bool { return flag != nil && *flag }

// entry is one object of a configuration as it was written.
type entry map[string]json.RawMessage

func (e entry) text(key string) string {
	var s string
	_ = json.Unmarshal(e[key], &s) // what is no text says nothing
	return s
}

// or puts a value where the configuration has none.
func (e entry) or(key string, value any) {
	if raw := e[key]; len(raw) > 0 && string(raw) != "null" {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		raw = json.RawMessage("null")
	}
	e[key] = raw
}

// configuration is everything that configs returns but extended, as JSON.
func (s *served) configuration(fields []described) json.RawMessage {
	d := s.model.Definition()
	byName := make(map[string]*described, len(fields))
	for i := range fields {
		byName[fields[i].FieldName] = &fields[i]
	}
	facets, table, downloads := objectOf(d.Facets), objectOf(d.Table), objectOf(d.Downloads)
	facets["aggregations"] = marshalled(s.facetsOf(entriesOf(facets["aggregations"]), fields, byName))
	table["columns"] = marshalled(columnsOf(entriesOf(table["columns"]), fields, byName, selectionsOf(s.schema)))
	table["maxResultsWindow"] = marshalled(s.window)
	table.or("rowIdFieldName", defaultRowID)
	downloads.or("allowCustomMaxRows", false)
	downloads.or("maxRows", defaultMaxRows)
	whole := entry{
		"facets": marshalled(facets), "table": marshalled(table), "downloads": marshalled(downloads),
		"matchbox": d.Matchbox, "charts": d.Charts,
	}
	whole.or("matchbox", []int{})
	whole.or("charts", nil)
	return marshalled(whole)
}

// facetsOf completes the configured facets; without any, the first fields that can be one.
func (s *served) facetsOf(configured []entry, fields []described, byName map[string]*described) []entry {
	out := []entry{}
	for _, e := range configured {
		name := e.text("fieldName")
		if name == "" {
			continue
		}
		f := byName[name]
		if f == nil {
			f = byName[strings.ReplaceAll(name, "__", ".")]
		}
		if f != nil {
			e.or("displayName", f.DisplayName)
			e.or("displayType", f.DisplayType)
		}
		e.or("isActive", false)
		e.or("show", false)
		out = append(out, e)
	}
	if len(configured) > 0 {
		return out
	}
	names := s.aggregationNames()
	for _, f := range fields {
		name := names[f.FieldName]
		if name == "" || strings.Contains(f.FieldName, "_id") {
			continue
		}
		e := entry{}
		e.or("fieldName", name)
		e.or("displayName", f.DisplayName)
		e.or("displayType", f.DisplayType)
		e.or("isActive", true)
		e.or("show", true)
		if out = append(out, e); len(out) == defaultShown {
			break
		}
	}
	return out
}

// aggregationNames returns what the fields of the catalogue are called among the aggregations.
func (s *served) aggregationNames() map[string]string {
	names := map[string]string{}
	if def := s.schema.AST.Types[s.schema.Document+"Aggregations"]; def != nil {
		for _, f := range def.Fields {
			if field, is := s.schema.Aggregated(f.Name); is {
				names[field] = f.Name
			}
		}
	}
	return names
}

// objectOf reads what was checked to be an object; a copy that can be changed.
func objectOf(raw json.RawMessage) entry {
	e := entry{}
	if json.Unmarshal(raw, &e) != nil || e == nil {
		return entry{}
	}
	return e
}

// entriesOf reads what was checked to be a list of objects.
func entriesOf(raw json.RawMessage) []entry {
	var all []entry
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(e entry) bool { return e == nil })
}

// marshalled returns a value as JSON, null where that is not possible.
func marshalled(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// configs plans what the configuration says of how a catalogue is shown.
func (x *execution) configs(f *ast.Field) (write, *fault) {
	fields := x.served.fields()
	raw := x.served.config()
	return x.objectOf(f, func(f *ast.Field) (write, *fault) {
		if f.Name == "extended" {
			wanted, bad := x.args(f).texts("fieldNames")
			if bad != nil {
				return nil, bad
			}
			if x.args(f).raw("fieldNames") != nil {
				fields = slices.DeleteFunc(slices.Clone(fields), func(d described) bool { return !slices.Contains(wanted, d.FieldName) })
			}
			if fields == nil {
				fields = []described{}
			}
			return given(marshalled(fields)), nil
		}
		one := x.whole(f)
		return func(w *answer) bool { return w.only(one, raw) }, nil
	}), nil
}

// given writes the same JSON every time.
func given(raw json.RawMessage) write { return func(w *answer) bool { return w.raw(raw) } }

// whole makes the shape of an object of JSON that has one field of a type as it is.
func (x *execution) whole(f *ast.Field) *shape {
	s := &shape{}
	s.wants = append(s.wants, x.plain(s, f))
	return s.done()
}

// plainShape makes the shape of a type whose fields are called as the members of its objects.
func (x *execution) plainShape(typeName string, set ast.SelectionSet) *shape {
	s := &shape{}
	for _, f := range x.collect(typeName, set) {
		s.wants = append(s.wants, x.plain(s, f))
	}
	return s.done()
}

func (x *execution) plain(s *shape, f *ast.Field) want {
	w := want{head: headOf(f), key: f.Alias, field: f}
	if f.Name == "__typename" {
		w.kind = wantTypename
		return w
	}
	of := f.Definition.Type.Name()
	w.slot, w.list = s.slot(f.Name), f.Definition.Type.Elem != nil
	if def := x.served.schema.AST.Types[of]; def != nil && def.Kind == ast.Object {
		w.kind, w.shape = wantPlain, x.plainShape(of, f.SelectionSet)
		return w
	}
	w.kind, w.scalar = wantScalar, scalarOf(of)
	return w
}

// asks reports whether a member is asked for, at any depth.
func (s *shape) asks(name string) bool {
	return slices.ContainsFunc(s.wants, func(w want) bool {
		return w.field != nil && w.field.Name == name || w.shape != nil && w.shape.asks(name)
	})
}

// mapping writes the mapping of what the catalogue shows: its fields by name.
func (x *execution) mapping() write {
	return func(w *answer) bool {
		rendered, err := x.served.model.Root().Render()
		if err != nil {
			return w.failed(faultOf(err))
		}
		raw := objectOf(rendered)["properties"]
		if raw == nil {
			raw = json.RawMessage("{}")
		}
		return w.raw(raw)
	}
}

// validConfig reports whether the catalogue is of a documentType and of an index.
func (x *execution) validConfig(f *ast.Field) write {
	args := x.args(f)
	d := x.served.model.Definition()
	valid := args.value("documentType").String() == d.DocumentType && args.value("index").String() == d.Index
	return func(w *answer) bool { return w.flag(valid) }
}
