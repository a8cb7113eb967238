package model

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

// Value is one value of a field. Which member is set depends on the class of the field's type.
type Value struct {
	// Text is set for texts, booleans and addresses.
	Text string
	// Number is set for numbers, and Inf instead for a number outside the range of a double.
	Number *big.Rat
	Inf    int
	// NegativeZero is set for -0.0 of a floating-point type with two zeros.
	NegativeZero bool
	// At is set for dates.
	At time.Time
	// Range is set for ranges.
	Range *Range
}

// StoredValue returns the value of a scalar in a document; false when it has none, such as an empty text for a number.
func StoredValue(f query.Field, scalar string) (Value, bool) {
	switch ClassOf(f.Type) {
	case booleanClass:
		return Value{Text: strconv.FormatBool(scalar == "true")}, true
	case AddressClass:
		address, err := netip.ParseAddr(scalar)
		return Value{Text: address.Unmap().String()}, err == nil
	case IntegerClass:
		v, ok := Numeral(scalar)
		if ok {
			v.Number = new(big.Rat).SetInt(new(big.Int).Quo(v.Number.Num(), v.Number.Denom()))
		}
		return v, ok
	case FractionClass:
		return Fraction(f, scalar)
	case DateClass:
		at, _, err := sqon.ParseDate(scalar)
		if f.Type == "date" {
			at = time.UnixMilli(at.UnixMilli()).UTC()
		}
		return Value{At: at}, err == nil
	default:
		return Value{Text: scalar}, f.Type != "binary" // which is not indexed
	}
}

// Numeral parses a decimal number.
func Numeral(text string) (Value, bool) {
	number, ok := new(big.Rat).SetString(strings.TrimSpace(text))
	return Value{Number: number}, ok
}

// Fraction returns a number as a floating-point type stores it.
func Fraction(f query.Field, text string) (Value, bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if text == "" || err != nil && !math.IsInf(x, 0) {
		return Value{}, false
	}
	switch f.Type {
	case "float":
		x = float64(float32(x))
	case "half_float":
		x = half(float64(float32(x)))
	case "scaled_float":
		x = math.Floor(x*f.Scale+0.5) / f.Scale
	}
	if math.IsInf(x, 0) {
		return Value{Inf: int(math.Copysign(1, x))}, true
	}
	return Value{Number: new(big.Rat).SetFloat64(x), NegativeZero: x == 0 && math.Signbit(x) && f.Type != "scaled_float"}, true
}

// half rounds to the nearest IEEE 754 binary16 number, ties to even.
func half(x float64) float64 {
	_, exponent := math.Frexp(x)
	unit := math.Ldexp(1, max(exponent-11, -24))
	if x = math.RoundToEven(x/unit) * unit; math.Abs(x) > 65504 {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return x
}

// Compare compares two values of a class: texts by their bytes, all others by their meaning, and so addresses by their bits.
func Compare(c Class, a, b Value) int {
	switch {
	case c == DateClass:
		return a.At.Compare(b.At)
	case c == AddressClass:
		x, y := netip.MustParseAddr(a.Text).As16(), netip.MustParseAddr(b.Text).As16()
		return bytes.Compare(x[:], y[:])
	case a.Number != nil && b.Number != nil:
		return a.Number.Cmp(b.Number)
	case c == IntegerClass || c == FractionClass:
		return cmp.Compare(a.Inf, b.Inf)
	default:
		return cmp.Compare(a.Text, b.Text)
	}
}

// CompareBound compares a value with a bound, which may be above or below all values.
func CompareBound(c Class, v, bound Value) int {
	if bound.Inf != 0 {
		return -bound.Inf
	}
	return Compare(c, v, bound)
}

// Float returns a value as facets use it: a date in whole milliseconds.
func Float(c Class, v Value) float64 {
	if c == DateClass {
		return float64(v.At.UnixMilli())
	}
	x, _ := v.Number.Float64()
	return x
}

// Whole returns a value of an integer type, a boolean or a date as an integer: a date in the unit of its type.
func Whole(fieldType string, v Value) int64 {
	switch {
	case fieldType == "date_nanos":
		return v.At.UnixNano()
	case fieldType == "date":
		return v.At.UnixMilli()
	case v.Number != nil:
		return v.Number.Num().Int64()
	case v.Text == "true":
		return 1
	default:
		return 0
	}
}

// Key returns the bucket key of a value.
func Key(c Class, v Value) string {
	switch c {
	case DateClass:
		return strconv.FormatInt(v.At.UnixMilli(), 10)
	case IntegerClass:
		return v.Number.Num().String()
	case FractionClass:
		return strconv.FormatFloat(Float(c, v), 'g', -1, 64)
	default:
		return v.Text
	}
}
