package query_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tutti/internal/filter/query"
)

func TestKey(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{
		{"long", "7", "7"},
		{"long", "-7", "-7"},
		{"long", "7.9", "7"},
		{"long", "-7.9", "-7"},
		{"long", "0.7e1", "7"},
		{"long", "9223372036854775807", "9223372036854775807"},
		{"long", "9223372036854775807.5", "9223372036854775807"},
		{"long", "9223372036854775808", ""},
		{"long", "1e300", ""},
		{"long", "x", ""},
		{"long", "", ""},
		{"long", "0x10", ""},
		{"long", "1_0", ""},
		{"long", "inf", ""},
		{"integer", "2147483647", "2147483647"},
		{"integer", "2147483648", ""},
		{"short", "-32768", "-32768"},
		{"short", "32768", ""},
		{"byte", "127", "127"},
		{"byte", "-129", ""},
		{"unsigned_long", "18446744073709551615", "18446744073709551615"},
		{"unsigned_long", "1.8e19", "18000000000000000000"},
		{"unsigned_long", "-1", ""},
		{"unsigned_long", "2e19", ""},
		{"unsigned_long", "x", ""},
		{"double", "0.1", "0.1"},
		{"double", "-0", "0"},
		{"double", "1e21", "1e+21"},
		{"double", "1e-7", "1e-7"},
		{"double", "1e400", ""},
		{"double", "NaN", ""},
		{"double", "0x1p4", ""},
		{"double", "1_0", ""},
		{"double", "Infinity", ""},
		{"scaled_float", "0x1p4", ""},
		{"float", "0.1", "0.10000000149011612"},
		{"float", "1e39", ""},
		{"half_float", "0.1", "0.0999755859375"},
		{"half_float", "65504", "65504"},
		{"half_float", "65520", ""},
		{"half_float", "6e-8", "5.960464477539063e-8"},
		{"half_float", "1e-9", "0"},
		{"half_float", "-2049", "-2048"},
		{"scaled_float", "1.005", "1"},
		{"scaled_float", "1.015", "1.01"},
		{"scaled_float", "-1.5", "-1.5"},
		{"scaled_float", "1e30", ""},
		{"boolean", "true", "true"},
		{"boolean", "false", "false"},
		{"boolean", "", "false"},
		{"boolean", "1", ""},
		{"date", "1970-01-02", "86400000"},
		{"date", "1969-12-31T23:59:59.9999Z", "-1"},
		{"date", "86400000", "86400000"},
		{"date", "x", ""},
		{"date_nanos", "1970-01-01T00:00:00.001500Z", "1"},
		{"date_nanos", "2300-01-01", ""},
		{"date_nanos", "2262-04-11T23:47:16.854775807Z", "9223372036854"},
		{"date_nanos", "2262-04-11T23:47:16.854775808Z", ""},
		{"date_nanos", "1969-12-31T23:59:59.9999Z", "-1"},
		{"date_nanos", "2024-03-05T10:20:30.123999999Z", "1709634030123"},
		{"keyword", "7", ""},
	} {
		f := query.Field{Type: c.kind, Scale: 100}
		key, ok := query.Key(f, c.text)
		got := ""
		if ok {
			got = query.Text(f, key)
		}
		if got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.kind, c.text, got, c.want)
		}
	}
}

// TestKeyOrder checks that keys have the order of their values, and convert back to them.
func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := query.Field{Type: rapid.SampledFrom([]string{"long", "double", "float", "half_float"}).Draw(t, "type")}
		draw := func(name string) (uint64, float64) {
			v := rapid.Float64Range(-70_000, 70_000).Draw(t, name)
			key, ok := query.Key(f, strconv.FormatFloat(v, 'f', -1, 64))
			if !ok && math.Abs(v) < 65_504 {
				t.Fatalf("%v has no key", v)
			}
			return key, query.Number(f, key)
		}
		a, v := draw("a")
		b, w := draw("b")
		if a != 0 && b != 0 && ((a < b) != (v < w) || (a == b) != (v == w)) {
			t.Fatalf("%v and %v have the keys %x and %x", v, w, a, b)
		}
	})
}

// TestKeyRange checks that a key is within a range exactly when its value is.
func TestKeyRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"byte", "short", "integer", "long", "unsigned_long", "double", "float", "half_float", "scaled_float"}).Draw(t, "type")
		f := query.Field{Type: kind, Scale: 10}
		literals := rapid.OneOf(
			rapid.SampledFrom([]string{
				"0", "-0", "127", "128", "-128", "-129", "32767.5", "-32768.5", "9223372036854775807", "9223372036854775808", "-9223372036854775808.5",
				"18446744073709551615", "18446744073709551616", "1e300", "-1e300", "0.1", "-0.1", "65504", "65505",
			}),
			rapid.Map(rapid.Float64Range(-300, 300), func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }),
			rapid.Map(rapid.IntRange(-300, 300), strconv.Itoa),
		)
		key, ok := query.Key(f, literals.Draw(t, "value"))
		if !ok {
			t.Skip("no value of the type")
		}
		bound := query.Bound{Set: true, Inclusive: rapid.Bool().Draw(t, "inclusive"), Number: literals.Draw(t, "bound")}
		upper := rapid.Bool().Draw(t, "upper")
		from, to := bound, query.Bound{}
		if upper {
			from, to = to, from
		}
		lo, hi, some := query.KeyRange(f, from, to)
		within := some && lo <= key && key <= hi
		if want := compared(f, key, bound, upper); within != want {
			t.Fatalf("%s %s within %+v (upper %t): %t, keys %x to %x", kind, query.Text(f, key), bound, upper, within, lo, hi)
		}
	})
}

// compared compares by exact arithmetic, with the bound rounded as the type rounds its values.
func compared(f query.Field, key uint64, b query.Bound, upper bool) bool {
	value, _ := new(big.Rat).SetString(query.Text(f, key))
	bound, _ := new(big.Rat).SetString(b.Number)
	switch f.Type {
	case "double", "float", "half_float":
		rounded, ok := query.Key(f, b.Number)
		if !ok { // above or below all values
			v, _ := strconv.ParseFloat(b.Number, 64)
			return (v > 0) == upper
		}
		bound.SetFloat64(query.Number(f, rounded))
		value.SetFloat64(query.Number(f, key)) // not Text, whose shortest decimal may be another number
	}
	order := value.Cmp(bound)
	switch {
	case order == 0:
		return b.Inclusive
	case upper:
		return order < 0
	default:
		return order > 0
	}
}

func TestKeyRangeOfDates(t *testing.T) {
	instant := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	at := func(text string, inclusive bool) query.Bound {
		return query.Bound{Set: true, Inclusive: inclusive, Time: instant(text)}
	}
	for _, c := range []struct {
		name, kind string
		from, to   query.Bound
		in, out    []string
	}{
		{
			"a second", "date", at("2024-03-05T10:00:00Z", true), at("2024-03-05T10:00:01Z", false),
			[]string{"2024-03-05T10:00:00Z", "2024-03-05T10:00:00.999Z"},
			[]string{"2024-03-05T09:59:59.999Z", "2024-03-05T10:00:01Z"},
		},
		{
			"between milliseconds", "date", at("2024-03-05T10:00:00.0005Z", true), at("2024-03-05T10:00:00.0025Z", false),
			[]string{"2024-03-05T10:00:00.001Z", "2024-03-05T10:00:00.002Z"},
			[]string{"2024-03-05T10:00:00Z", "2024-03-05T10:00:00.003Z"},
		},
		{
			"without its ends", "date", at("2024-03-05T10:00:00Z", false), at("2024-03-05T10:00:00.002Z", true),
			[]string{"2024-03-05T10:00:00.001Z", "2024-03-05T10:00:00.002Z"},
			[]string{"2024-03-05T10:00:00Z", "2024-03-05T10:00:00.003Z"},
		},
		{
			"nanoseconds", "date_nanos", at("2024-03-05T10:00:00.000000001Z", false), at("2024-03-05T10:00:00.000000003Z", false),
			[]string{"2024-03-05T10:00:00.000000002Z"},
			[]string{"2024-03-05T10:00:00.000000001Z", "2024-03-05T10:00:00.000000003Z"},
		},
		{
			"beyond nanoseconds", "date_nanos",
			query.Bound{Set: true, Time: instant("1000-01-01T00:00:00Z")},
			query.Bound{Set: true, Time: instant("9000-01-01T00:00:00Z")},
			[]string{"1900-01-01", "2200-01-01"},
			nil,
		},
		{"after all nanoseconds", "date_nanos", query.Bound{Set: true, Time: instant("9000-01-01T00:00:00Z")}, query.Bound{}, nil, []string{"2200-01-01"}},
		{"before all nanoseconds", "date_nanos", query.Bound{}, query.Bound{Set: true, Time: instant("1000-01-01T00:00:00Z")}, nil, []string{"1900-01-01"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := query.Field{Type: c.kind}
			lo, hi, ok := query.KeyRange(f, c.from, c.to)
			within := func(text string) bool {
				key, known := query.Key(f, text)
				if !known {
					t.Fatalf("%s has no key", text)
				}
				return ok && lo <= key && key <= hi
			}
			for _, text := range c.in {
				if !within(text) {
					t.Errorf("%s is not within", text)
				}
			}
			for _, text := range c.out {
				if within(text) {
					t.Errorf("%s is within", text)
				}
			}
		})
	}
}

// TestKeyRangeOfHugeNumbers checks bounds outside the range of a double.
func TestKeyRangeOfHugeNumbers(t *testing.T) {
	for _, kind := range []string{"long", "unsigned_long", "scaled_float", "double", "float"} {
		f := query.Field{Type: kind, Scale: 10}
		key, _ := query.Key(f, "7")
		for number, below := range map[string]bool{"1E700000000": false, "-1E700000000": true, "1e99999999999999999999": false, "1e400": false} {
			bound := query.Bound{Set: true, Inclusive: true, Number: number}
			for upper, want := range map[bool]bool{true: !below, false: below} {
				from, to := bound, query.Bound{}
				if upper {
					from, to = to, from
				}
				lo, hi, ok := query.KeyRange(f, from, to)
				if got := ok && lo <= key && key <= hi; got != want {
					t.Errorf("%s: 7 within %s (upper %t): %t", kind, number, upper, got)
				}
			}
		}
	}
}
