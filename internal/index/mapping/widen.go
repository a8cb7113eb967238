package mapping

import "slices"

// widen returns numbers of different types, that two trees have at the same paths, a type that has the values of both: an index
// that follows another often counts in a wider one, and for a filter they are the same. It changes both trees.
func widen(a, b *Field) {
	if a.Type != b.Type {
		if wide := wider(a.Type, b.Type); wide != "" {
			a.Type, b.Type = wide, wide
		}
	}
	for name, child := range a.Properties {
		if other := b.Properties[name]; other != nil {
			widen(child, other)
		}
	}
	for name, child := range a.Fields {
		if other := b.Fields[name]; other != nil {
			widen(child, other)
		}
	}
}

// wider returns the type that has the values of two types of numbers, "" when one is none.
func wider(a, b Type) Type {
	whole := []Type{"byte", "short", "integer", Long}
	broken := []Type{"half_float", "float", Double}
	numbers := slices.Concat(whole, broken, []Type{"unsigned_long", "scaled_float"})
	if !slices.Contains(numbers, a) || !slices.Contains(numbers, b) {
		return ""
	}
	for _, kind := range [][]Type{whole, broken} {
		if i, j := slices.Index(kind, a), slices.Index(kind, b); i >= 0 && j >= 0 {
			return kind[max(i, j)]
		}
	}
	return Double
}
