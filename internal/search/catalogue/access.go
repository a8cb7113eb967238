package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
	"tutti/internal/index/mapping"
	"tutti/internal/search/catalogue/definition"
)

// Access is an access rule applied to the current mapping (CONTRACT section 6): a caller sees the documents whose Field has a
// value that one of its scopes grants, and those that Public matches. Its names are the mapping's own (Model.MappingFields).
type Access struct {
	// Field is the path of the field, or of its sub-field with exact values. "" denies access to everyone: the mapping has no
	// such field, and Public is nil.
	Field string
	// Scope is the template of the scope that grants a value, with {value} in its place.
	Scope string
	// Public matches the documents that everyone sees; nil for none.
	Public *sqon.Filter
}

// accessOf returns the effective rule. A part that does not fit the mapping grants nothing.
func accessOf(rule *definition.AccessRule, whole *fieldSet) (*Access, []string) {
	if rule == nil {
		return nil, nil
	}
	f, found := whole.byName[rule.Field]
	if !found {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the mapping has no field %q", rule.Field),
		}
	}
	path := whole.exactPath(f)
	if path == "" {
		return &Access{Scope: rule.Scope}, []string{
			fmt.Sprintf("the access rule denies all: the field %q is of type %s, which does not store exact values", rule.Field, f.Type),
		}
	}
	access := &Access{Field: path, Scope: rule.Scope, Public: rule.Public}
	if fault := publicFilterError(rule.Public, whole); fault != "" {
		access.Public = nil
		return access, []string{"the access rule's public filter does not fit the mapping, so nothing is public: " + fault}
	}
	return access, nil
}

// publicFilterError returns why a public filter does not fit the mapping, "" if it does.
func publicFilterError(public *sqon.Filter, whole *fieldSet) string {
	if public == nil {
		return ""
	}
	if err := public.Check(whole); err != nil {
		return core.MessageOf(err)
	}
	return ""
}

// exactPath returns the path whose terms are exactly the field's values, "" for none: terms of an analyzed text or of a
// normalized keyword would match documents with other values too.
func (s *fieldSet) exactPath(f field) string {
	if f.matchesExactly() {
		return f.path
	}
	if f.mapped == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.mapped.Fields)) {
		path := f.path + "." + name
		if sub := s.byName[path]; sub.path == path && sub.matchesExactly() { // a runtime field may have replaced it
			return path
		}
	}
	return ""
}

// matchesExactly reports whether a term matches only documents with exactly that value. The engine treats a term on an ip as a
// network, and one on a constant_keyword as a pattern: a scope of "0.0.0.0/0" or of "*" would grant everything.
func (f field) matchesExactly() bool {
	switch mapping.Type(f.Type) {
	case mapping.Keyword:
		return f.mapped == nil || f.mapped.Params["normalizer"] == nil
	case "wildcard", mapping.Boolean, mapping.Long, "integer", "short", "byte", "unsigned_long":
		return true
	default:
		return false
	}
}
