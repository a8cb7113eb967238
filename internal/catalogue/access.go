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

// accessOf returns the rule in force. What does not fit the mapping opens nothing.
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
			fmt.Sprintf("the access rule denies all: the field %q is of type %s, which does not keep values as they are", rule.Field, f.Type),
		}
	}
	access := &Access{Field: path, Scope: rule.Scope, Public: rule.Public}
	if fault := publicFilterError(rule.Public, whole); fault != "" {
		access.Public = nil
		return access, []string{"the access rule's public filter does not fit the mapping, so nothing is public: " + fault}
	}
	return access, nil
}

// publicFilterError says why a public filter does not fit the mapping, "" when it does.
func publicFilterError(public *sqon.Filter, whole *fieldSet) string {
	if public == nil {
		return ""
	}
	if err := public.Check(whole); err != nil {
		return core.MessageOf(err)
	}
	return ""
}

// exactPath returns the path whose terms are the field's values themselves, "" when there is none: terms of an analyzed text or
// of a normalized keyword would grant documents of other values too.
func (s *fieldSet) exactPath(f field) string {
	if f.matchesExactly() {
		return f.path
	}
	if f.mapped == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.mapped.Fields)) {
		path := f.path + "." + name
		if sub := s.byName[path]; sub.path == path && sub.matchesExactly() { // a runtime field may have taken its place
			return path
		}
	}
	return ""
}

// matchesExactly reports whether a term finds the documents of that very value and no others. The engine takes a term on an ip for
// a network, and one on a constant_keyword for a pattern: a scope of "0.0.0.0/0" or of "*" would grant everything.
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
