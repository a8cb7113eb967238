package mapping

import "slices"

// widen changes number types that differ at the same path of two trees to one with the values of both: an index that follows
// another often has a wider type, and filters treat both alike. It changes both trees.
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

// wider returns the number type with the values of two number types, "" when one is not a number.
func wider(a, b Type) Type {
	integers := []Type{"byte", "short", "integer", Long}
	floats := []Type{"half_float", "float", Double}
	numbers := slices.Concat(integers, floats, []Type{"unsigned_long", "scaled_float"})
	if !slices.Contains(numbers, a) || !slices.Contains(numbers, b) {
		return ""
	}
	for _, kind := range [][]Type{integers, floats} {
		if i, j := slices.Index(kind, a), slices.Index(kind, b); i >= 0 && j >= 0 {
			return kind[max(i, j)]
		}
	}
	return Double
}
