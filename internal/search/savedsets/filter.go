package savedsets

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

// setFields maps the fields that a list of saved sets can be filtered by to their types.
type setFields map[string]string

var (
	_ query.Fields = setFields{}
	_ sqon.Names   = setFields{}
)

func newSetFields() setFields {
	return setFields{
		"setId": "keyword", "id": "keyword", "_id": "keyword", "path": "keyword", "type": "keyword", "userId": "keyword", "ids": "keyword",
		"size": "long", "createdAt": "date",
	}
}

// Field returns the type of a field.
func (s setFields) Field(name string) (sqon.Field, bool) {
	t, ok := s[name]
	return sqon.Field{Type: t}, ok
}

// Names returns the names of all fields.
func (s setFields) Names() iter.Seq[string] { return slices.Values(slices.Sorted(maps.Keys(s))) }

// Lookup returns a field in the form that filters use.
func (s setFields) Lookup(name string) (query.Field, bool) {
	t, ok := s[name]
	return query.Field{Path: name, Type: t}, ok
}

// NestedPath returns false: a set has no nested fields.
func (setFields) NestedPath(string) (string, bool) { return "", false }

// Leaves returns none: a set has no objects.
func (setFields) Leaves(string) []query.Field { return nil }

// setFilter selects the sets of a list.
type setFilter struct{ root *query.Node }

// newSetFilter validates a filter of saved sets. It returns CodeInvalid for unknown fields.
func newSetFilter(ctx context.Context, f sqon.Filter) (setFilter, error) {
	fields := newSetFields()
	if err := f.Check(fields); err != nil {
		return setFilter{}, err
	}
	root, err := query.Lower(ctx, f, fields, nil)
	return setFilter{root: root}, err
}

// set reports whether a set matches. It calls members only if the result depends on them.
func (f setFilter) set(set core.SavedSet, members func() ([]string, error)) (bool, error) {
	if f.root == nil {
		return true, nil
	}
	m := setMatch{set: set, members: members}
	matches := m.node(f.root)
	return matches, m.err
}

// setMatch compares one set with a filter.
type setMatch struct {
	set     core.SavedSet
	members func() ([]string, error)
	err     error
}

func (m *setMatch) node(n *query.Node) bool {
	switch n.Op {
	case query.Everything:
		return true
	case query.And:
		return !slices.ContainsFunc(n.Children, func(c *query.Node) bool { return !m.node(c) })
	case query.Or:
		return slices.ContainsFunc(n.Children, m.node)
	case query.Not:
		return !m.node(n.Children[0])
	case query.Terms:
		return slices.ContainsFunc(m.values(n.Field.Path), func(v string) bool {
			_, found := slices.BinarySearch(n.Terms, v)
			return found
		})
	case query.Exists:
		return len(m.values(n.Field.Path)) > 0
	case query.Range:
		low, high, ok := query.KeyRange(n.Field, n.From, n.To)
		return ok && slices.ContainsFunc(m.values(n.Field.Path), func(v string) bool {
			key, ok := query.Key(n.Field, v)
			return ok && low <= key && key <= high
		})
	case query.Patterns:
		return slices.ContainsFunc(m.values(n.Field.Path), func(v string) bool { return m.like(n, v) })
	default: // match-none, and nested elements, which sets do not have
		return false
	}
}

func (m *setMatch) like(n *query.Node, value string) bool {
	return slices.ContainsFunc(n.Patterns, func(p sqon.Pattern) bool {
		if n.Fold {
			return p.MatchFold(value)
		}
		return p.Match(value)
	})
}

// values returns the values of a field; an empty text is no value.
func (m *setMatch) values(path string) []string {
	value := ""
	switch path {
	case "setId", "id", "_id":
		value = m.set.ID
	case "path":
		value = m.set.Path
	case "type":
		value = m.set.Type
	case "userId":
		value = m.set.UserID
	case "size":
		value = strconv.Itoa(m.set.Size)
	case "createdAt":
		value = m.set.CreatedAt.UTC().Format(time.RFC3339Nano)
	case "ids":
		members, err := m.members()
		if err != nil {
			m.err = err
		}
		return members
	}
	if value == "" {
		return nil
	}
	return []string{value}
}
