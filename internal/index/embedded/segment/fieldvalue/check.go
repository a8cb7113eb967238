package fieldvalue

import (
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// Check returns why a value of a field of ranges or of a geo_point, as document.Checker.Opaque receives it, is not one of its type; nil for
// other fields.
func Check(f *mapping.Field, kind document.Kind, raw []byte) error {
	if fieldtype.Of(f.Type).Name == "geo_point" {
		return checkGeoPoint(f, kind, raw)
	}
	return checkRange(f, kind, raw)
}
