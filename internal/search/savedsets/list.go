package savedsets

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
	"tutti/internal/search/graphql"
)

// setField is a field of saved sets.
type setField struct {
	fieldType string
	// text returns the value of a set, "" for none; nil for the members, which are several.
	text func(set core.SavedSet) string
	// compare compares two sets that have a value; nil to compare their texts.
	compare func(a, b core.SavedSet) int
}

// setFieldOf returns the field of a name.
func setFieldOf(name string) (setField, bool) {
	keyword := func(text func(set core.SavedSet) string) (setField, bool) {
		return setField{fieldType: "keyword", text: text}, true
	}
	switch name {
	case "setId", "id", "_id":
		return keyword(func(set core.SavedSet) string { return set.ID })
	case "path":
		return keyword(func(set core.SavedSet) string { return set.Path })
	case "type":
		return keyword(func(set core.SavedSet) string { return set.Type })
	case "userId":
		return keyword(func(set core.SavedSet) string { return set.UserID })
	case "ids":
		return keyword(nil)
	case "size":
		return setField{
			"long", func(set core.SavedSet) string { return strconv.Itoa(set.Size) },
			func(a, b core.SavedSet) int { return cmp.Compare(a.Size, b.Size) },
		}, true
	case "createdAt":
		return setField{
			"date", func(set core.SavedSet) string { return set.CreatedAt.UTC().Format(time.RFC3339Nano) },
			func(a, b core.SavedSet) int { return a.CreatedAt.Compare(b.CreatedAt) },
		}, true
	default:
		return setField{}, false
	}
}

// setFields are the fields that a list of saved sets can be filtered by.
type setFields struct{}

var (
	_ query.Fields = setFields{}
	_ sqon.Names   = setFields{}
)

// Field returns the type of a field.
func (setFields) Field(name string) (sqon.Field, bool) {
	f, ok := setFieldOf(name)
	return sqon.Field{Type: f.fieldType}, ok
}

// Names returns the names of all fields.
func (setFields) Names() iter.Seq[string] {
	return slices.Values([]string{"_id", "createdAt", "id", "ids", "path", "setId", "size", "type", "userId"})
}

// Lookup returns a field in the form that filters use.
func (setFields) Lookup(name string) (query.Field, bool) {
	f, ok := setFieldOf(name)
	return query.Field{Path: name, Type: f.fieldType}, ok
}

// NestedPath returns false: a set has no nested fields.
func (setFields) NestedPath(string) (string, bool) { return "", false }

// Leaves returns none: a set has no objects.
func (setFields) Leaves(string) []query.Field { return nil }

// newSetFilter validates a filter of saved sets and translates it. It returns CodeInvalid for unknown fields.
func newSetFilter(ctx context.Context, f sqon.Filter) (*query.Node, error) {
	if err := f.Check(setFields{}); err != nil {
		return nil, err
	}
	return query.Lower(ctx, f, setFields{}, nil)
}

// matches reports whether a set matches a filter, nil for all. It calls members only if the result depends on them.
func matches(filter *query.Node, set core.SavedSet, members func() ([]string, error)) (bool, error) {
	if filter == nil {
		return true, nil
	}
	m := setMatch{set: set, members: members}
	found := m.node(filter)
	return found, m.err
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
func (m *setMatch) values(name string) []string {
	f, _ := setFieldOf(name)
	if f.text == nil {
		members, err := m.members()
		if err != nil {
			m.err = err
		}
		return members
	}
	if value := f.text(m.set); value != "" {
		return []string{value}
	}
	return nil
}

// setKey is one sort key of saved sets.
type setKey struct {
	graphql.SetSort
	field setField
}

// setOrder is a sort order of saved sets.
type setOrder []setKey

// newSetOrder returns a sort order. It returns CodeInvalid for unknown fields and fields with several values.
func newSetOrder(sort []graphql.SetSort) (setOrder, error) {
	order := make(setOrder, 0, len(sort))
	for i, one := range sort {
		if one.Field == "_score" { // there are no scores: all sets are equal
			continue
		}
		field, known := setFieldOf(one.Field)
		if !known || field.text == nil {
			return nil, &core.Error{
				Code:    core.CodeInvalid,
				Message: fmt.Sprintf("the argument sort [%d]: saved sets cannot be sorted by %q", i, one.Field),
				Hint:    "sort them by setId, path, type, userId, size or createdAt",
			}
		}
		order = append(order, setKey{one, field})
	}
	return order, nil
}

// compare compares two sets by all keys; 0 means equal.
func (o setOrder) compare(a, b core.SavedSet) int {
	for _, key := range o {
		if c := key.compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

func (k setKey) compare(a, b core.SavedSet) int {
	textA, textB := k.field.text(a), k.field.text(b)
	switch {
	case textA == "" && textB == "":
		return 0
	case (textA == "") != (textB == ""):
		if (textA == "") == k.MissingFirst {
			return -1
		}
		return 1
	}
	if k.Descending {
		a, b, textA, textB = b, a, textB, textA
	}
	if k.field.compare != nil {
		return k.field.compare(a, b)
	}
	return cmp.Compare(textA, textB)
}
