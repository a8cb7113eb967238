package fieldtype_test

import (
	"math"
	"slices"
	"testing"

	"tutti/internal/filter/fieldtype"
)

// TestOf: every row is found by its name, and a type without a row is opaque.
func TestOf(t *testing.T) {
	t.Parallel()
	names := fieldtype.Names(func(*fieldtype.Type) bool { return true })
	if sorted := slices.Compact(slices.Sorted(slices.Values(names))); len(sorted) != len(names) {
		t.Fatalf("%d rows have %d names", len(names), len(sorted))
	}
	for _, name := range names {
		if got := fieldtype.Of(name).Name; got != name {
			t.Errorf("the row of %q is %q", name, got)
		}
	}
	for _, name := range []string{"", "unheard_of", "keywords", "Keyword", "\xff"} {
		row := fieldtype.Of(name)
		if row.Name != "" || row.Engines != 0 || row.Faults != nil || row.Searchable() || row.Countable() || row.JSON() != fieldtype.Any {
			t.Errorf("the row of %q is %+v", name, *row)
		}
	}
}

// TestAbilities: what the values of types can do.
func TestAbilities(t *testing.T) {
	t.Parallel()
	type abilities struct{ searchable, countable, ordered bool }
	for name, want := range map[string]abilities{
		"keyword": {true, true, false}, "constant_keyword": {true, true, false}, "ip": {true, true, false}, "boolean": {true, true, false},
		"flattened": {true, true, false}, "flat_object": {true, false, false}, "text": {true, false, false}, "match_only_text": {true, false, false},
		"search_as_you_type": {true, false, false}, "version": {}, "counted_keyword": {}, "date_range": {}, "geo_point": {}, "binary": {}, "alias": {},
		"object": {}, "nested": {}, "long": {true, true, true}, "unsigned_long": {true, true, true}, "scaled_float": {true, true, true}, "date_nanos": {true, true, true},
	} {
		row := fieldtype.Of(name)
		if got := (abilities{row.Searchable(), row.Countable(), row.Ordered()}); got != want {
			t.Errorf("%s can %+v, want %+v", name, got, want)
		}
	}
}

// TestJSON: the kinds of values in documents.
func TestJSON(t *testing.T) {
	t.Parallel()
	for kind, names := range map[fieldtype.Kind][]string{
		fieldtype.Object: {"object", "nested", "flattened", "flat_object"}, fieldtype.Bool: {"boolean"},
		fieldtype.Text:   {"keyword", "text", "search_as_you_type", "ip", "date", "date_nanos", "version", "binary", "counted_keyword"},
		fieldtype.Number: {"byte", "unsigned_long", "scaled_float", "half_float"}, fieldtype.Any: {"geo_point", "date_range", "join", "alias", "dense_vector"},
	} {
		for _, name := range names {
			if got := fieldtype.Of(name).JSON(); got != kind {
				t.Errorf("values of %s are of kind %d, want %d", name, got, kind)
			}
		}
	}
}

// TestLimits: the lowest and highest numbers.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]float64{
		"byte": {-128, 127}, "short": {-32768, 32767}, "integer": {math.MinInt32, math.MaxInt32}, "long": {-0x1p63, 0x1p63 - 1024},
		"unsigned_long": {0, 0x1p64 - 2048}, "half_float": {-65504, 65504}, "float": {-math.MaxFloat32, math.MaxFloat32},
		"double": {-math.MaxFloat64, math.MaxFloat64}, "scaled_float": {-math.MaxFloat64, math.MaxFloat64},
	} {
		if low, high := fieldtype.Of(name).Limits(); low != want[0] || high != want[1] {
			t.Errorf("%s is from %g to %g, want %g to %g", name, low, high, want[0], want[1])
		}
	}
	for name, want := range map[string][2]int64{"byte": {-128, 127}, "short": {-32768, 32767}, "integer": {math.MinInt32, math.MaxInt32}, "long": {math.MinInt64, math.MaxInt64}} {
		if low, high := fieldtype.Of(name).Integers(); low != want[0] || high != want[1] {
			t.Errorf("%s is from %d to %d, want %d to %d", name, low, high, want[0], want[1])
		}
	}
}

// TestWider: the wider of two number types has the values of both.
func TestWider(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"byte", "short", "short"},
		{"long", "integer", "long"},
		{"half_float", "float", "float"},
		{"double", "float", "double"},
		{"long", "double", "double"},
		{"unsigned_long", "long", "double"},
		{"scaled_float", "scaled_float", "double"},
		{"scaled_float", "long", "double"},
		{"half_float", "byte", "double"},
		{"long", "keyword", ""},
		{"date", "long", ""},
		{"unheard_of", "long", ""},
	} {
		if got := fieldtype.Wider(tt[0], tt[1]); got != tt[2] {
			t.Errorf("the wider of %s and %s is %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}
