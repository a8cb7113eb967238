package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Version30 returns the part of an OpenAPI 3.1 document with the paths for which keep returns true as an OpenAPI 3.0.3 document, for
// clients that do not support 3.1: JSON Schema's null, const and examples are converted to the form of 3.0, and contains, which 3.0
// lacks, is omitted. Other keywords that only 3.1 has must not occur in the document.
func Version30(document []byte, keep func(path string) bool) ([]byte, error) {
	var doc map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decoding the OpenAPI document: %w", err)
	}
	doc["openapi"] = "3.0.3"
	delete(doc, "jsonSchemaDialect")
	if info, ok := doc["info"].(map[string]any); ok {
		delete(info, "summary")
		if license, ok := info["license"].(map[string]any); ok {
			delete(license, "identifier")
		}
	}
	paths, _ := doc["paths"].(map[string]any)
	for path := range paths {
		if !keep(path) {
			delete(paths, path)
		}
	}
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, schema := range schemas {
		schemaTo30(schema)
	}
	delete(components, "schemas")
	convertSchemas(doc)
	if len(schemas) > 0 {
		components["schemas"] = schemas
	}
	dropUnused(doc)
	converted, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encoding the OpenAPI document: %w", err)
	}
	return converted, nil
}

// convertSchemas converts every schema of a part of the document that is not a schema itself.
func convertSchemas(part any) {
	switch part := part.(type) {
	case map[string]any:
		for name, value := range part {
			switch name {
			case "schema":
				schemaTo30(value)
			case "example", "examples", "default": // values, not descriptions
			default:
				convertSchemas(value)
			}
		}
	case []any:
		for _, element := range part {
			convertSchemas(element)
		}
	}
}

// schemaTo30 converts a schema in place.
func schemaTo30(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if types, ok := s["type"].([]any); ok {
		delete(s, "type")
		for _, t := range types {
			if t == "null" {
				s["nullable"] = true
			} else {
				s["type"] = t
			}
		}
	}
	if value, ok := s["const"]; ok {
		s["enum"] = []any{value}
	}
	if examples, ok := s["examples"].([]any); ok && len(examples) > 0 {
		s["example"] = examples[0]
	}
	for _, name := range []string{"const", "examples", "contains", "$schema"} {
		delete(s, name)
	}
	properties, _ := s["properties"].(map[string]any)
	for _, property := range properties {
		schemaTo30(property)
	}
	for _, name := range []string{"items", "additionalProperties", "not"} {
		schemaTo30(s[name])
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		for _, element := range list {
			schemaTo30(element)
		}
	}
}

// dropUnused removes components that no path refers to, directly or through others, and tags without operations.
func dropUnused(doc map[string]any) {
	components, _ := doc["components"].(map[string]any)
	used := map[string]bool{}
	var follow func(part any)
	follow = func(part any) {
		switch part := part.(type) {
		case map[string]any:
			ref, _ := part["$ref"].(string)
			if at, ok := strings.CutPrefix(ref, "#/components/"); ok && !used[at] {
				used[at] = true
				kind, name, _ := strings.Cut(at, "/")
				of, _ := components[kind].(map[string]any)
				follow(of[name])
			}
			for _, value := range part {
				follow(value)
			}
		case []any:
			for _, element := range part {
				follow(element)
			}
		}
	}
	follow(doc["paths"])
	for kind, of := range components {
		named, _ := of.(map[string]any)
		for name := range named {
			if kind != "securitySchemes" && !used[kind+"/"+name] {
				delete(named, name)
			}
		}
		if len(named) == 0 {
			delete(components, kind)
		}
	}
	tags := map[any]bool{}
	paths, _ := doc["paths"].(map[string]any)
	for _, item := range paths {
		operations, _ := item.(map[string]any)
		for _, operation := range operations {
			o, _ := operation.(map[string]any)
			list, _ := o["tags"].([]any)
			for _, tag := range list {
				tags[tag] = true
			}
		}
	}
	all, _ := doc["tags"].([]any)
	kept := []any{}
	for _, tag := range all {
		if t, ok := tag.(map[string]any); ok && tags[t["name"]] {
			kept = append(kept, tag)
		}
	}
	doc["tags"] = kept
}
