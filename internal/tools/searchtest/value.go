package searchtest

import (
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

// value is one value of a field. Which member is set depends on the class of the field's type.
type value struct {
	// text is set for texts, booleans and addresses.
	text string
	// number is set for numbers; inf instead for a number outside the range of a double.
	number *big.Rat
	inf    int
	// at is set for dates.
	at time.Time
}

// storedValue returns the value of a scalar in a document; false when it has none, such as an empty text for a number.
func storedValue(f query.Field, scalar string) (value, bool) {
	switch classOf(f.Type) {
	case booleanClass:
		return value{text: strconv.FormatBool(scalar == "true")}, true
	case addressClass:
		address, err := netip.ParseAddr(scalar)
		return value{text: address.Unmap().String()}, err == nil
	case integerClass:
		v, ok := numeral(scalar)
		if ok {
			v.number = new(big.Rat).SetInt(new(big.Int).Quo(v.number.Num(), v.number.Denom()))
		}
		return v, ok
	case fractionClass:
		return fraction(f, scalar)
	case dateClass:
		at, _, err := sqon.ParseDate(scalar)
		if f.Type == "date" {
			at = time.UnixMilli(at.UnixMilli()).UTC()
		}
		return value{at: at}, err == nil
	default:
		return value{text: scalar}, true
	}
}

// numeral parses a decimal number.
func numeral(text string) (value, bool) {
	number, ok := new(big.Rat).SetString(strings.TrimSpace(text))
	return value{number: number}, ok
}

// fraction returns a number as a floating-point type stores it.
func fraction(f query.Field, text string) (value, bool) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if text == "" || err != nil && !math.IsInf(x, 0) {
		return value{}, false
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
		return value{inf: int(math.Copysign(1, x))}, true
	}
	return value{number: new(big.Rat).SetFloat64(x)}, true
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

// compare compares two values of a class: texts by their bytes, all others by their meaning.
func compare(c class, a, b value) int {
	switch {
	case c == dateClass:
		return a.at.Compare(b.at)
	case a.number != nil && b.number != nil:
		return a.number.Cmp(b.number)
	case c == integerClass || c == fractionClass:
		return cmp.Compare(a.inf, b.inf)
	default:
		return cmp.Compare(a.text, b.text)
	}
}

// float returns a value as facets use it: a date in whole milliseconds.
func float(c class, v value) float64 {
	if c == dateClass {
		return float64(v.at.UnixMilli())
	}
	x, _ := v.number.Float64()
	return x
}

// key returns the bucket key of a value.
func key(c class, v value) string {
	switch c {
	case dateClass:
		return strconv.FormatInt(v.at.UnixMilli(), 10)
	case integerClass:
		return v.number.Num().String()
	case fractionClass:
		return strconv.FormatFloat(float(c, v), 'g', -1, 64)
	default:
		return v.text
	}
}
