package graphql

import (
	"encoding/json"
	"strings"

	"tutti/internal/search/graphql/schema"
)

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
	object, _ := s.Object(typeName)
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
