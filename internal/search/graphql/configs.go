package graphql

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tutti/internal/search/graphql/schema"
)

// Defaults of a catalogue's configuration, as Arranger's clients expect them.
const (
	defaultMaxRows   = 0 // unlimited
	defaultRowID     = "id"
	defaultShown     = 10
	typeObject       = "object"
	typeNested       = "nested"
	undescribedField = "* "
)

// fieldDescription describes a field to clients.
type fieldDescription struct {
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

// describedFields returns the descriptions of all fields in the mapping's order.
func (s *servedCatalogue) describedFields() []fieldDescription {
	var all []fieldDescription
	for _, f := range s.model.Catalogue().Fields {
		e, _ := s.model.Extended(f.Name)
		d := fieldDescription{
			DisplayName: f.DisplayName, DisplayType: cmp.Or(e.DisplayType, f.Type), DisplayValues: e.DisplayValues, FieldName: f.Name,
			IsActive: isTrue(e.IsActive), IsArray: isTrue(e.IsArray), PrimaryKey: isTrue(e.PrimaryKey), QuickSearchEnabled: isTrue(e.QuickSearchEnabled),
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

func isTrue(flag *bool) bool { return flag != nil && *flag }

// entry is one object of the configuration as it was written.
type entry map[string]json.RawMessage

func (e entry) text(key string) string {
	var s string
	_ = json.Unmarshal(e[key], &s) // a value that is not a string counts as ""
	return s
}

// setDefault sets a member that is absent or null.
func (e entry) setDefault(key string, value any) {
	if raw := e[key]; len(raw) > 0 && string(raw) != "null" {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		raw = json.RawMessage("null")
	}
	e[key] = raw
}

// configuration returns the JSON of configs, except extended.
func (s *servedCatalogue) configuration(fields []fieldDescription) json.RawMessage {
	d := s.model.Definition()
	byName := make(map[string]*fieldDescription, len(fields))
	for i := range fields {
		byName[fields[i].FieldName] = &fields[i]
	}
	facets, table, downloads := objectOf(d.Facets), objectOf(d.Table), objectOf(d.Downloads)
	facets["aggregations"] = toJSON(s.facetsOf(entriesOf(facets["aggregations"]), fields, byName))
	table["columns"] = toJSON(columnsOf(entriesOf(table["columns"]), fields, byName, selectionsOf(s.schema)))
	if sorting := entriesOf(table["defaultSorting"]); sorting != nil {
		for _, e := range sorting {
			e.setDefault("desc", false)
		}
		table["defaultSorting"] = toJSON(sorting)
	}
	table["maxResultsWindow"] = toJSON(s.planned.Window())
	table.setDefault("rowIdFieldName", defaultRowID)
	downloads.setDefault("allowCustomMaxRows", false)
	downloads.setDefault("maxRows", defaultMaxRows)
	whole := entry{
		"facets": toJSON(facets), "table": toJSON(table), "downloads": toJSON(downloads),
		"matchbox": d.Matchbox, "charts": d.Charts,
	}
	whole.setDefault("matchbox", []int{})
	whole.setDefault("charts", nil)
	return toJSON(whole)
}

// facetsOf completes the configured facets. If none are configured, it returns the first fields that can be facets.
func (s *servedCatalogue) facetsOf(configured []entry, fields []fieldDescription, byName map[string]*fieldDescription) []entry {
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
			e.setDefault("displayName", f.DisplayName)
			e.setDefault("displayType", f.DisplayType)
		}
		e.setDefault("isActive", false)
		e.setDefault("show", false)
		out = append(out, e)
	}
	if len(configured) > 0 {
		return out
	}
	names := s.aggregationNames()
	for _, f := range fields {
		name := names[f.FieldName]
		if path, _ := s.model.Path(f.FieldName); name == "" || strings.Contains(f.FieldName, "_id") || s.model.Uncounted(path) != "" {
			continue
		}
		e := entry{}
		e.setDefault("fieldName", name)
		e.setDefault("displayName", f.DisplayName)
		e.setDefault("displayType", f.DisplayType)
		e.setDefault("isActive", true)
		e.setDefault("show", true)
		if out = append(out, e); len(out) == defaultShown {
			break
		}
	}
	return out
}

// aggregationNames returns the names of the fields in aggregations, by field name.
func (s *servedCatalogue) aggregationNames() map[string]string {
	names := map[string]string{}
	if def := s.schema.AST.Types[s.schema.Document+"Aggregations"]; def != nil {
		for _, f := range def.Fields {
			if field, is := s.schema.Aggregated[f.Name]; is {
				names[field] = f.Name
			}
		}
	}
	return names
}

// objectOf decodes a validated JSON object; the caller may change the result.
func objectOf(raw json.RawMessage) entry {
	e := entry{}
	if json.Unmarshal(raw, &e) != nil || e == nil {
		return entry{}
	}
	return e
}

// entriesOf decodes a validated list of JSON objects.
func entriesOf(raw json.RawMessage) []entry {
	var all []entry
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(e entry) bool { return e == nil })
}

// toJSON returns a value as JSON, null if it cannot be encoded.
func toJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// columnsOf completes the configured columns. If none are configured, it returns columns for the first fields with values.
func columnsOf(configured []entry, fields []fieldDescription, byName map[string]*fieldDescription, selections map[string]fieldSelection) []entry {
	out := []entry{}
	for _, e := range configured {
		name := e.text("fieldName")
		if name == "" {
			continue
		}
		f := byName[name]
		if f == nil {
			f = &fieldDescription{DisplayName: undescribedField + name}
		}
		if f.DisplayType != "" {
			e.setDefault("displayType", f.DisplayType)
		}
		e["isArray"] = toJSON(f.IsArray)
		e.setDefault("show", false)
		complete(e, name, f, selections)
		out = append(out, e)
	}
	if len(configured) > 0 {
		return out
	}
	for _, f := range fields {
		selected, held := selections[f.FieldName]
		if !held || f.DisplayType == typeNested || f.DisplayType == typeObject {
			continue
		}
		e := entry{}
		e.setDefault("fieldName", f.FieldName)
		e.setDefault("displayType", f.DisplayType)
		e.setDefault("isArray", f.IsArray || selected.list)
		e.setDefault("show", true)
		e.setDefault("sortable", false)
		complete(e, f.FieldName, &f, selections)
		if out = append(out, e); len(out) == defaultShown {
			break
		}
	}
	return out
}

// complete adds the members by which table components find their values.
func complete(e entry, name string, f *fieldDescription, selections map[string]fieldSelection) {
	e.setDefault("accessor", name)
	e.setDefault("canChangeShow", true)
	e.setDefault("displayName", f.DisplayName)
	values := f.DisplayValues
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	e.setDefault("displayValues", values)
	selected, held := selections[name]
	if !held { // the path of a response, or a field without values: completed as Arranger does
		selected = fieldSelection{query: selectionOf(name), jsonPath: "$." + withoutIndices(name)}
	}
	e.setDefault("jsonPath", selected.jsonPath)
	e.setDefault("query", selected.query)
}

// fieldSelection is the GraphQL selection of a field, and the JSONPath of its values in the response.
type fieldSelection struct {
	query, jsonPath string
	// list is set if the path leads to a list of values, as it does for nested elements.
	list bool
}

// selectionsOf returns the selections of the fields with values, by field name.
func selectionsOf(s *schema.Schema) map[string]fieldSelection {
	all := map[string]fieldSelection{}
	addSelections(all, s, s.Document+"Node", fieldSelection{jsonPath: "$"}, "")
	return all
}

// addSelections adds the selections of the fields below a type. around.query opens the enclosing selection sets, closing closes
// them.
func addSelections(all map[string]fieldSelection, s *schema.Schema, typeName string, around fieldSelection, closing string) {
	object, _ := s.Objects[typeName]
	for name, m := range object.Members {
		below := fieldSelection{query: around.query + name, jsonPath: around.jsonPath + "." + name, list: around.list}
		switch m.Kind {
		case schema.Scalar:
			below.query += closing
			all[m.Name] = below
		case schema.Plain:
			below.query += " { "
			if m.List {
				below.jsonPath, below.list = below.jsonPath+"[*]", true
			}
			addSelections(all, s, m.Type, below, closing+" }")
		case schema.Connection:
			below.query += " { hits { edges { node { "
			below.jsonPath, below.list = below.jsonPath+".hits.edges[*].node", true
			addSelections(all, s, m.Node, below, closing+" } } } }")
		}
	}
}

// withoutIndices replaces indices with wildcards: edges[0] becomes edges[*].
func withoutIndices(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if at := strings.IndexByte(part, '['); at >= 0 && strings.HasSuffix(part, "]") {
			parts[i] = part[:at] + "[*]"
		}
	}
	return strings.Join(parts, ".")
}

// selectionOf returns the GraphQL selection set that leads to a field.
func selectionOf(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if strings.HasPrefix(part, "edges[") {
			parts[i] = "edges"
		}
	}
	return strings.Join(parts, " { ") + strings.Repeat(" }", len(parts)-1)
}
