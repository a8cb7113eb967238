package sqon

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// schemaDialect is the JSON Schema dialect of Schema, LanguageVersion the version in Description.
const (
	schemaDialect = "https://json-schema.org/draft/2020-12/schema"
	schemaID      = "urn:tutti:sqon:" + LanguageVersion
	title         = "Serialized Query Object Notation"
)

// LanguageVersion is the semantic version of the filter language in Schema and Description: the major version increases when a
// valid filter becomes invalid, the minor version when an invalid filter becomes valid.
const LanguageVersion = "1.0.0"

// object is an object of a JSON Schema. Members are encoded in the order of their names.
type object = map[string]any

// Schema returns a JSON Schema (draft 2020-12) of what Parse accepts. It does not include the limits and the fields, and does not
// detect duplicate members. Each call returns a new slice with the same bytes.
func Schema() []byte { return indented(schema()) }

// indented returns the indented JSON of a value.
func indented(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// Maps of strings, lists and numbers always encode.
	_ = encoder.Encode(value)
	return b.Bytes()
}

func schema() object {
	texts, bounds := object{"type": "string"}, object{"type": []string{"string", "number"}}
	scalar := object{"type": []string{"string", "number", "boolean"}}
	list := func(of object, least int) object { return object{"type": "array", "items": of, "minItems": least} }
	name := object{"type": "string", "minLength": 1}
	return object{
		"$schema": schemaDialect,
		"$id":     schemaID,
		"title":   title,
		"description": fmt.Sprintf("A filter of a catalogue. An empty object and null match everything. The maximum is %d levels, %d groups and clauses, and %d values.",
			MaxDepth, MaxNodes, MaxValues),
		"$ref": "#/$defs/filter",
		"$defs": object{
			"filter": object{"anyOf": []object{
				{"type": "null"},
				{"type": "object", "maxProperties": 0},
				ref("group"), ref("membership"), ref("range"), ref("between"), ref("wildcard"),
			}},
			"group": node("Filters that must all match (and), at least one of which must match (or), or none of which may match (not).",
				opsOf(groupContent), object{"type": "array", "items": ref("filter")}),
			"membership": node("The values of a field are, or are not, among the given values.",
				opsOf(listContent), content("fieldName", name, anyOf(scalar, list(scalar, 0)))),
			"range": node("A value of a field is below or above a bound.",
				opsOf(rangeContent), content("fieldName", name, anyOf(bounds, withMost(list(bounds, 1), 1)))),
			"between": node("A value of a field is between two bounds, inclusive.",
				opsOf(betweenContent), content("fieldName", name, withMost(list(bounds, 2), 2))),
			"wildcard": node("A value of one of the fields matches one of the patterns, or contains one without * and ?.",
				opsOf(patternContent), withEntity(content("fieldNames", list(name, 1), anyOf(texts, list(texts, 1))))),
			"pivot": object{
				"description": fmt.Sprintf(`The nested path of which a single element must match the whole filter; null and "." mean none. `+
					"It is split into at most %d alternatives: each or or wildcard on fields both inside and outside of the path at least doubles their number.",
					maxAlternatives),
				"type":      []string{"string", "null"},
				"minLength": 1,
			},
		},
	}
}

func ref(definition string) object { return object{"$ref": "#/$defs/" + definition} }

func anyOf(schemas ...object) object { return object{"anyOf": schemas} }

// withMost adds a maximum length to a list.
func withMost(list object, most int) object {
	list["maxItems"] = most
	return list
}

// opsOf returns all names of the operators with a kind of content.
func opsOf(wanted contentKind) []string {
	var ops []string
	for _, op := range append([]Operator{And, Or, Not}, fieldOperators()...) {
		if op.contentKind() == wanted {
			ops = append(ops, string(op))
		}
	}
	for _, a := range aliases() {
		if a.op.contentKind() == wanted {
			ops = append(ops, a.name)
		}
	}
	return ops
}

// node returns the schema of a group or a clause.
func node(description string, ops []string, content object) object {
	return object{
		"description":          description,
		"type":                 "object",
		"required":             []string{"op", "content"},
		"additionalProperties": false,
		"properties": object{
			"op":      object{"enum": ops},
			"content": content,
			"pivot":   ref("pivot"),
		},
	}
}

// content returns the schema of the content of a clause.
func content(names string, name, value object) object {
	return object{
		"type":                 "object",
		"required":             []string{names, "value"},
		"additionalProperties": false,
		"properties":           object{names: name, "value": value},
	}
}

// withEntity adds the member in which existing clients store notes.
func withEntity(content object) object {
	if properties, ok := content["properties"].(object); ok {
		properties["entity"] = object{"type": "string", "description": "A note of the client; it has no effect."}
	}
	return content
}
