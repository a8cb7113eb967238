package mapping

import (
	"cmp"

	"tutti/internal/filter/fieldtype"
)

// widen changes number types that differ at the same path of two trees to one with the values of both: an index that follows
// another often has a wider type, and filters treat both alike. It changes both trees.
func widen(a, b *Field) {
	if a.Type != b.Type {
		if wide := fieldtype.Wider(a.Type, b.Type); wide != "" {
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

// Wider returns the type of a new field for the values of two types, "" for none: of two number types the one with the values of both, else
// keyword.
func Wider(a, b Type) Type {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	default:
		return cmp.Or(fieldtype.Wider(a, b), Keyword)
	}
}
