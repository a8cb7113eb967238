package setting

import (
	"strings"
	"time"
)

// SchemaOf returns the JSON Schema of an object with keys.
func SchemaOf(keys []Key) map[string]any {
	properties := map[string]any{}
	var required []string
	var requiredUnless []any
	for _, k := range keys {
		properties[k.name] = orNull(keySchema(k))
		if k.isSecret() {
			properties[k.secretFile()] = orNull(map[string]any{
				"type": "string", "description": "File that contains " + k.name + ".",
			})
		}
		if fallback, ok := k.fallback.(string); !ok || !k.required || fallback != "" {
			continue
		}
		if k.optional == nil {
			required = append(required, k.name)
		} else {
			requiredUnless = []any{
				map[string]any{
					"required":   []string{k.name},
					"properties": map[string]any{k.name: map[string]any{"minLength": 1}},
				},
				map[string]any{
					"required":   []string{k.unlessKey},
					"properties": map[string]any{k.unlessKey: map[string]any{"const": k.unlessValue}},
				},
			}
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if requiredUnless != nil {
		s["anyOf"] = requiredUnless
	}
	return s
}

// orNull permits a key without a value, which YAML decodes as null, for its default.
func orNull(s map[string]any) map[string]any {
	description := s["description"]
	delete(s, "description")
	out := map[string]any{"description": description, "anyOf": []any{s, map[string]any{"type": "null"}}}
	if fallback, ok := s["default"]; ok {
		out["default"] = fallback
		delete(s, "default")
	}
	return out
}

func keySchema(k Key) map[string]any {
	var s map[string]any
	switch {
	case k.each != nil:
		s = map[string]any{"type": "array", "items": SchemaOf(k.elements(1)[0])}
	case k.members != nil:
		s = SchemaOf(k.members)
	default:
		s = valueSchema(k)
	}
	s["description"] = k.doc
	return s
}

func valueSchema(k Key) map[string]any {
	switch k.target.(type) {
	case *int, *int64:
		s := map[string]any{"type": "integer", "minimum": k.minimum, "default": k.fallback}
		if k.maximum < maxShown {
			s["maximum"] = k.maximum
		}
		return s
	case *float64:
		return map[string]any{"type": "number", "minimum": 0, "maximum": 1, "default": k.fallback}
	case *bool:
		s := flagSchema()
		s["default"] = k.fallback
		return s
	case **bool:
		return flagSchema()
	case *time.Duration:
		return durationSchema(k)
	case *[]string:
		item := map[string]any{"type": "string", "minLength": 1}
		if k.pattern != nil {
			item["pattern"] = k.pattern.String()
		}
		s := map[string]any{"type": "array", "items": item, "default": defaultOf(k)}
		if k.required {
			s["minItems"] = 1
		}
		return s
	case *Secret:
		if k.pattern != nil {
			return map[string]any{"type": "string", "pattern": "^$|" + k.pattern.String()}
		}
		return map[string]any{"type": "string"}
	default:
		return textSchema(k)
	}
}

func flagSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "boolean"},
		map[string]any{"enum": []int{0, 1}},
		map[string]any{"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|0|1)$"},
	}}
}

func durationSchema(k Key) map[string]any {
	const pattern = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
	if !k.zeroDisables {
		return map[string]any{"type": "string", "pattern": pattern, "default": defaultOf(k)}
	}
	return map[string]any{"default": defaultOf(k), "anyOf": []any{
		map[string]any{"type": "string", "pattern": pattern + `|^[+-]?0$`},
		map[string]any{"const": 0},
	}}
}

func textSchema(k Key) map[string]any {
	s := map[string]any{"type": "string"}
	if k.number {
		s["type"], s["minimum"] = []string{"string", "integer"}, 0
	}
	if fallback, ok := k.fallback.(string); ok && (fallback != "" || !k.required && k.choices == nil) {
		s["default"] = fallback
	}
	switch {
	case k.ignoreCase:
		s["pattern"] = foldedPattern(k.choices)
	case k.choices != nil:
		s["enum"] = k.choices
	case k.pattern != nil && k.required && k.optional == nil:
		s["pattern"] = k.pattern.String()
	case k.pattern != nil:
		s["pattern"] = "^$|" + k.pattern.String()
	case k.required:
		s["minLength"] = 1
	}
	return s
}

// foldedPattern matches the choices case-insensitively; JSON Schema's expressions have no flag for it.
func foldedPattern(choices []string) string {
	var p strings.Builder
	p.WriteString("^(")
	for i, c := range choices {
		if i > 0 {
			p.WriteByte('|')
		}
		for _, r := range c {
			p.WriteString("[" + strings.ToUpper(string(r)) + string(r) + "]")
		}
	}
	return p.String() + ")$"
}

// defaultOf returns a key's default in the file's format.
func defaultOf(k Key) any {
	switch v := k.fallback.(type) {
	case time.Duration:
		return shortDuration(v)
	case []string:
		if v == nil {
			return []string{}
		}
		return v
	default:
		return v
	}
}
