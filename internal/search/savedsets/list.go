package savedsets

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/graphql"
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

// setKey is one sort key of saved sets.
type setKey struct {
	graphql.SetSort
	// compare compares two sets that have a value; lacks reports whether a set has none.
	compare func(a, b core.SavedSet) int
	lacks   func(set core.SavedSet) bool
}

// setOrder is a sort order of saved sets.
type setOrder []setKey

// newSetOrder returns a sort order. It returns CodeInvalid for unknown fields and fields with several values.
func newSetOrder(sort []graphql.SetSort) (setOrder, error) {
	order := make(setOrder, 0, len(sort))
	for i, one := range sort {
		key, known := newSetKey(one)
		if !known {
			return nil, &core.Error{
				Code:    core.CodeInvalid,
				Message: fmt.Sprintf("the argument sort [%d]: saved sets have no order by %q", i, one.Field),
				Hint:    "they have one by setId, path, type, userId, size and createdAt",
			}
		}
		order = append(order, key)
	}
	return order, nil
}

func newSetKey(sort graphql.SetSort) (key setKey, known bool) {
	never := func(core.SavedSet) bool { return false }
	byText := func(text func(set core.SavedSet) string) (setKey, bool) {
		return setKey{
			sort, func(a, b core.SavedSet) int { return cmp.Compare(text(a), text(b)) },
			func(set core.SavedSet) bool { return text(set) == "" },
		}, true
	}
	switch sort.Field {
	case "setId", "id", "_id":
		return byText(func(set core.SavedSet) string { return set.ID })
	case "path":
		return byText(func(set core.SavedSet) string { return set.Path })
	case "type":
		return byText(func(set core.SavedSet) string { return set.Type })
	case "userId":
		return byText(func(set core.SavedSet) string { return set.UserID })
	case "size":
		return setKey{sort, func(a, b core.SavedSet) int { return cmp.Compare(a.Size, b.Size) }, never}, true
	case "createdAt":
		return setKey{sort, func(a, b core.SavedSet) int { return a.CreatedAt.Compare(b.CreatedAt) }, never}, true
	case "_score": // there are no scores: all sets are equal
		return setKey{sort, func(core.SavedSet, core.SavedSet) int { return 0 }, never}, true
	default:
		return setKey{}, false
	}
}

// compare compares two sets by all keys; 0 means equal.
func (o setOrder) compare(a, b core.SavedSet) int {
	for _, key := range o {
		if c := key.place(a, b); c != 0 {
			return c
		}
	}
	return 0
}

func (k setKey) place(a, b core.SavedSet) int {
	switch lacksA, lacksB := k.lacks(a), k.lacks(b); {
	case lacksA && lacksB:
		return 0
	case lacksA != lacksB:
		if lacksA == k.MissingFirst {
			return -1
		}
		return 1
	case k.Descending:
		return k.compare(b, a)
	default:
		return k.compare(a, b)
	}
}
