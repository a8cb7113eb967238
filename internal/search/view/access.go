package view

import (
	"context"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/search/catalogue"
)

// valuePlaceholder is replaced by the granted value in the template of a scope.
const valuePlaceholder = "{value}"

// accessFilter returns the filter of the documents that who may see: nil for all, a node that matches nothing without a grant.
// The values in scopes are exact terms, whatever characters they contain.
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

// publicFilter returns the filter of the documents that everyone may see. A filter that cannot be translated matches nothing, and
// so does a saved set, because there is no owner.
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

// grantedValues returns the values that scopes grant by a template.
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
