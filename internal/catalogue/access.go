package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/sqon"
)

// Access is an access rule as it is in force with the mapping as it is (CONTRACT section 6): a caller sees the documents
// whose Field has a value that one of its scopes names, and those that Public matches. Its names are the mapping's own
// (Model.Whole).
type Access struct {
	// Field is the path of the field, or of its sub-field that keeps values as they are. "" denies everything to everybody:
	// the mapping has no such field, and Public is nil then.
	Field string
	// Scope is the template of the scope that grants a value, which stands for {value} in it.
	Scope string
	// Public is what everybody sees; nil means nothing.
	Public *sqon.Filter
}

// accessOf gives the rule in force. What does not fit the mapping opens nothing.
func accessOf(rule *definition.AccessRule, tree *mapping.Field, whole *fieldSet) (*Access, []string) {
	if rule == nil {
		return nil, nil
	}
	f, found := whole.byName[rule.Field]
	if !found {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the mapping has no field %q", rule.Field),
		}
	}
	path := exactPath(f, tree.Lookup(f.path))
	if path == "" {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the field %q is of type %s, which does not keep values as they are", rule.Field, f.Type),
		}
	}
	access := &Access{Field: path, Scope: rule.Scope, Public: rule.Public}
	if fault := publicFault(rule.Public, whole); fault != "" {
		access.Public = nil
		return access, []string{"the access rule's public filter does not fit the mapping, so nothing is public: " + fault}
	}
	return access, nil
}

// publicFault says why a public filter does not fit the mapping, "" when it does.
func publicFault(public *sqon.Filter, whole *fieldSet) string {
	if public == nil {
		return ""
	}
	if err := public.Check(whole); err != nil {
		return core.MessageOf(err)
	}
	return ""
}

// exactPath gives the path whose terms are the field's values themselves, "" when there is none: terms of an analyzed text or
// of a normalized keyword would grant documents of other values too. mapped is nil for a runtime field.
func exactPath(f field, mapped *mapping.Field) string {
	if mapped == nil || string(mapped.Type) != f.Type {
		mapped = &mapping.Field{Type: mapping.Type(f.Type)}
	}
	if keepsValues(mapped) {
		return f.path
	}
	for _, name := range slices.Sorted(maps.Keys(mapped.Fields)) {
		if keepsValues(mapped.Fields[name]) {
			return f.path + "." + name
		}
	}
	return ""
}

func keepsValues(f *mapping.Field) bool {
	switch f.Type {
	case mapping.Keyword:
		return f.Params["normalizer"] == nil
	case "constant_keyword", "wildcard", "ip", mapping.Boolean, mapping.Long, "integer", "short", "byte", "unsigned_long":
		return true
	default:
		return false
	}
}
