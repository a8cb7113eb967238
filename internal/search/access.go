package search

import (
	"context"
	"slices"
	"strings"

	"tutti/internal/catalogue"
	"tutti/internal/core"
	"tutti/internal/index/query"
)

// valuePlaceholder is where a scope's template has the value that it grants.
const valuePlaceholder = "{value}"

// accessFilter returns the documents that who may see: nil for everything, a node that matches nothing when there is no grant. The
// values that scopes name are exact terms, whatever characters they are of.
func accessFilter(m *catalogue.Model, who core.Principal) *query.Node {
	rule, nothing := m.Access(), &query.Node{Op: query.Nothing}
	switch {
	case who.System || rule == nil && m.Definition().DefaultAccess.Allows(who):
		return nil
	case rule == nil:
		return nothing
	}
	seen := nothing
	whole := mappingFields(m)
	if f, ok := whole.Lookup(rule.Field); ok && rule.Field != "" {
		seen = query.Exactly(f, grantedValues(rule.Scope, who.Scopes))
	}
	return query.Either(seen, publicFilter(rule, whole))
}

// publicFilter returns what everybody sees. What cannot be asked opens nothing, and nor does a saved set: nobody's is meant.
func publicFilter(rule *catalogue.Access, whole fields) *query.Node {
	nothing := &query.Node{Op: query.Nothing}
	if rule.Field == "" || rule.Public == nil {
		return nothing
	}
	noSets := func(context.Context, string) ([]string, error) { return nil, nil }
	n, err := query.Lower(context.Background(), *rule.Public, whole, noSets)
	switch {
	case err != nil:
		return nothing
	case n == nil:
		return &query.Node{Op: query.Everything}
	default:
		return n
	}
}

// grantedValues returns the values that scopes name by a template.
func grantedValues(template string, scopes []string) []string {
	before, after, ok := strings.Cut(template, valuePlaceholder)
	if !ok {
		return nil
	}
	var values []string
	for _, scope := range scopes {
		rest, found := strings.CutPrefix(scope, before)
		value, ends := strings.CutSuffix(rest, after)
		if found && ends && value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}
