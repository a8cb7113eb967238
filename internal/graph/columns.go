package graph

import (
	"encoding/json"
	"strings"

	"tutti/internal/graph/schema"
)

// columnsOf completes the configured columns; without any, those of the first fields with values.
func columnsOf(configured []entry, fields []described, byName map[string]*described, selections map[string]selection) []entry {
	out := []entry{}
	for _, e := range configured {
		name := e.text("fieldName")
		if name == "" {
			continue
		}
		f := byName[name]
		if f == nil {
			f = &described{DisplayName: undescribedField + name}
		}
		if f.DisplayType != "" {
			e.or("displayType", f.DisplayType)
		}
		e["isArray"] = marshalled(f.IsArray)
		e.or("show", false)
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
		e.or("fieldName", f.FieldName)
		e.or("displayType", f.DisplayType)
		e.or("isArray", f.IsArray || selected.list)
		e.or("show", true)
		e.or("sortable", false)
		complete(e, f.FieldName, &f, selections)
		if out = append(out, e); len(out) == defaultShown {
			break
		}
	}
	return out
}

// complete adds what tables find their values by.
func complete(e entry, name string, f *described, selections map[string]selection) {
	e.or("accessor", name)
	e.or("canChangeShow", true)
	e.or("displayName", f.DisplayName)
	values := f.DisplayValues
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	e.or("displayValues", values)
	selected, held := selections[name]
	if !held { // the path of an answer, or the name of no value: as Arranger completes them
		selected = selection{query: selectionOf(name), jsonPath: "$." + withoutIndices(name)}
	}
	e.or("jsonPath", selected.jsonPath)
	e.or("query", selected.query)
}

// selection is how clients select a field in GraphQL and find its values in the answer.
type selection struct {
	query, jsonPath string
	// list is set where the path leads to a list of values, as it does below nested elements.
	list bool
}

// selectionsOf returns the selections of the fields that documents hold values of, by the catalogue's names.
func selectionsOf(s *schema.Schema) map[string]selection {
	all := map[string]selection{}
	addSelections(all, s, s.Document+"Node", selection{jsonPath: "$"}, "")
	return all
}

// addSelections adds the selections below a type: query opens what stands around it, and closing closes that.
func addSelections(all map[string]selection, s *schema.Schema, typeName string, around selection, closing string) {
	object, _ := s.Object(typeName)
	for name, m := range object.Members {
		below := selection{query: around.query + name, jsonPath: around.jsonPath + "." + name, list: around.list}
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

// withoutIndices puts every item in the place of one: edges[0] is edges[*].
func withoutIndices(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if at := strings.IndexByte(part, '['); at >= 0 && strings.HasSuffix(part, "]") {
			parts[i] = part[:at] + "[*]"
		}
	}
	return strings.Join(parts, ".")
}

// selectionOf returns the selection set of GraphQL that leads to a field.
func selectionOf(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if strings.HasPrefix(part, "edges[") {
			parts[i] = "edges"
		}
	}
	return strings.Join(parts, " { ") + strings.Repeat(" }", len(parts)-1)
}
