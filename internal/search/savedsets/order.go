package savedsets

import (
	"cmp"
	"fmt"

	"tutti/internal/core"
	"tutti/internal/search/graphql"
)

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
