package query

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"tutti/internal/filter/sqon"
)

// family groups types with the same kind of values.
type family uint8

const (
	otherFamily family = iota
	// textFamily is matched by whole texts, analyzedFamily by the terms of an analyzer.
	textFamily
	analyzedFamily
	addressFamily
	booleanFamily
	integerFamily
	unsignedFamily
	floatFamily
	scaledFamily
	millisFamily
	nanosFamily
)

func familyOf(fieldType string) family {
	switch fieldType {
	case "keyword", "wildcard", "constant_keyword", "flattened", flatObject:
		return textFamily
	case "text", "match_only_text", "search_as_you_type":
		return analyzedFamily
	case "ip":
		return addressFamily
	case "boolean":
		return booleanFamily
	case "byte", "short", "integer", "long":
		return integerFamily
	case "unsigned_long":
		return unsignedFamily
	case "half_float", "float", "double":
		return floatFamily
	case "scaled_float":
		return scaledFamily
	case "date":
		return millisFamily
	case "date_nanos":
		return nanosFamily
	default:
		return otherFamily
	}
}

// Keyed reports whether values of a type have keys; values of all other types are texts.
func Keyed(fieldType string) bool { return familyOf(fieldType) >= booleanFamily }

// Dated reports whether values of a type are instants.
func Dated(fieldType string) bool { return familyOf(fieldType) >= millisFamily }

// Analyzed reports whether values of a type are analyzed: they are matched by terms and have no order.
func Analyzed(fieldType string) bool { return familyOf(fieldType) == analyzedFamily }

// flatObject is OpenSearch's type for free-form objects. It stores their values for filters only.
const flatObject = "flat_object"

// Countable reports whether values of a type can be counted and sorted.
func Countable(fieldType string) bool {
	return Searchable(fieldType) && !Analyzed(fieldType) && fieldType != flatObject
}

// Searchable reports whether values of a type can be searched.
func Searchable(fieldType string) bool { return familyOf(fieldType) != otherFamily }

// Key returns a value of a numeric, date or boolean type as a number with the order of the values. text is a value in a document or
// one of Node.Terms. It returns false when text is not a value of the type. Integers are truncated and floating-point types round,
// as the engine does with documents. Dates are milliseconds, date_nanos nanoseconds since 1970.
func Key(f Field, text string) (uint64, bool) {
	switch familyOf(f.Type) {
	case booleanFamily:
		return boolKey(text)
	case integerFamily:
		v, ok := integer(text)
		return SignedKey(v), ok && inRange(f.Type, v)
	case unsignedFamily:
		return unsigned(text)
	case floatFamily:
		v, err := strconv.ParseFloat(text, 64)
		v = roundToType(f.Type, v)
		return FloatKey(v), err == nil && digits(text) && !math.IsInf(v, 0)
	case scaledFamily:
		v, err := strconv.ParseFloat(text, 64)
		v = math.Floor(v*f.Scale + 0.5)
		return SignedKey(int64(v)), err == nil && digits(text) && math.Abs(v) < 1<<63
	case millisFamily:
		from, _, err := sqon.ParseDate(text)
		return SignedKey(from.UnixMilli()), err == nil
	case nanosFamily:
		from, _, err := sqon.ParseDate(text)
		return SignedKey(from.UnixNano()), err == nil && fitsNanos(from)
	default:
		return 0, false
	}
}

// KeyRange returns the range of keys, lo and hi included, within two bounds; false when it is empty.
func KeyRange(f Field, from, to Bound) (lo, hi uint64, ok bool) {
	lo, hi, ok = keyLimits(f.Type)
	if from.Set && ok {
		var at uint64
		at, ok = boundKey(f, from, false)
		lo = max(lo, at)
	}
	if to.Set && ok {
		var at uint64
		at, ok = boundKey(f, to, true)
		hi = min(hi, at)
	}
	return lo, hi, ok && lo <= hi
}

// keyLimits returns the range of keys of a type.
func keyLimits(fieldType string) (lo, hi uint64, ok bool) {
	switch familyOf(fieldType) {
	case booleanFamily:
		return 0, 1, true
	case integerFamily:
		low, high := limits(fieldType)
		return SignedKey(low), SignedKey(high), true
	case floatFamily:
		return FloatKey(math.Inf(-1)), FloatKey(math.Inf(1)), true
	case unsignedFamily, scaledFamily, millisFamily, nanosFamily:
		return 0, math.MaxUint64, true
	default:
		return 0, 0, false
	}
}

// boundKey returns the outermost key within a bound, the highest of an upper one; false when there is none.
func boundKey(f Field, b Bound, upper bool) (uint64, bool) {
	switch familyOf(f.Type) {
	case integerFamily:
		v, fits := integerBound(b, upper, math.MinInt64, math.MaxInt64)
		return SignedKey(v.Int64()), fits
	case unsignedFamily:
		v, fits := integerBound(b, upper, 0, math.MaxUint64)
		return v.Uint64(), fits
	case scaledFamily:
		v := decimal(b.Number)
		b.Number = v.Mul(v, new(big.Float).SetFloat64(f.Scale)).Text('g', 60)
		scaled, fits := integerBound(b, upper, math.MinInt64, math.MaxInt64)
		return SignedKey(scaled.Int64()), fits
	case floatFamily:
		v, _ := strconv.ParseFloat(b.Number, 64) // infinite when out of range, as intended
		return floatBound(roundToType(f.Type, v), b.Inclusive, upper)
	case millisFamily:
		return timeBound(b.Time, b.Inclusive, upper), true
	case nanosFamily:
		return nanosBound(b, upper)
	default:
		return 0, false
	}
}

// integerBound returns the outermost integer within a bound, clamped to the limits of a type; false when no integer of the type is
// within the bound.
func integerBound(b Bound, upper bool, low int64, high uint64) (*big.Int, bool) {
	least, most := big.NewInt(low), new(big.Int).SetUint64(high)
	v := decimal(b.Number)
	if v.IsInf() && v.Sign() > 0 {
		return most, upper
	}
	if v.IsInf() {
		return least, !upper
	}
	n, accuracy := v.Int(nil) // truncated toward zero
	fraction := accuracy != big.Exact
	one := big.NewInt(1)
	switch {
	case !upper && fraction && v.Sign() > 0, !upper && !fraction && !b.Inclusive:
		n.Add(n, one)
	case upper && fraction && v.Sign() < 0, upper && !fraction && !b.Inclusive:
		n.Sub(n, one)
	}
	switch {
	case n.Cmp(least) < 0:
		return least, !upper
	case n.Cmp(most) > 0:
		return most, upper
	default:
		return n, true
	}
}

// floatBound returns the outermost key of a floating-point number within a bound.
func floatBound(v float64, inclusive, upper bool) (uint64, bool) {
	key := FloatKey(v)
	switch {
	case inclusive:
		return key, true
	case upper && math.IsInf(v, -1), !upper && math.IsInf(v, 1):
		return 0, false
	case upper:
		return key - 1, true
	default:
		return key + 1, true
	}
}

// timeBound returns the outermost millisecond within a bound.
func timeBound(t time.Time, inclusive, upper bool) uint64 {
	at := t.UnixMilli()
	fraction := t.Nanosecond()%int(time.Millisecond) != 0
	switch {
	case upper && !fraction && !inclusive:
		at--
	case !upper && (fraction || !inclusive):
		at++
	}
	return SignedKey(at)
}

// nanosBound is timeBound for nanoseconds, whose range is smaller than that of time.Time.
func nanosBound(b Bound, upper bool) (uint64, bool) {
	if !fitsNanos(b.Time) {
		late := b.Time.Year() > 1970
		if late {
			return math.MaxUint64, upper
		}
		return 0, !upper
	}
	key := SignedKey(b.Time.UnixNano())
	switch {
	case b.Inclusive:
		return key, true
	case upper:
		return key - 1, key > 0
	default:
		return key + 1, key < math.MaxUint64
	}
}

// Number returns the value of a key: for a date whole milliseconds since 1970, for a boolean 0 or 1.
func Number(f Field, key uint64) float64 {
	switch familyOf(f.Type) {
	case integerFamily, millisFamily:
		return float64(Signed(key))
	case nanosFamily:
		return float64(Millis(key))
	case floatFamily:
		return FloatOf(key)
	case scaledFamily:
		return float64(Signed(key)) / f.Scale
	default:
		return float64(key)
	}
}

// Text returns the value of a key in the form of Bucket.Key.
func Text(f Field, key uint64) string {
	switch familyOf(f.Type) {
	case booleanFamily:
		return strconv.FormatBool(key == 1)
	case integerFamily, millisFamily:
		return strconv.FormatInt(Signed(key), 10)
	case nanosFamily:
		return strconv.FormatInt(Millis(key), 10)
	case unsignedFamily:
		return strconv.FormatUint(key, 10)
	default:
		return Literal(Number(f, key))
	}
}

// Literal returns the shortest decimal text of a number, with an exponent where JSON encoders use one.
func Literal(v float64) string {
	format := byte('f')
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.FormatFloat(v, format, -1, 64)
}

func boolKey(text string) (uint64, bool) {
	switch text {
	case "true":
		return 1, true
	case "false", "": // the engine treats an empty text as false
		return 0, true
	default:
		return 0, false
	}
}

// integer returns the integer part of a decimal number.
func integer(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	if !isNumeral(text) {
		return 0, false
	}
	n, _ := decimal(text).Int(nil)
	return n.Int64(), n.IsInt64()
}

func unsigned(text string) (uint64, bool) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return v, true
	}
	if !isNumeral(text) {
		return 0, false
	}
	n, _ := decimal(text).Int(nil)
	return n.Uint64(), n.IsUint64()
}

// isNumeral reports whether a text is a decimal number within the range of a double.
func isNumeral(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && digits(text)
}

// digits reports whether a text is of the characters of decimal numerals: Go reads others too.
func digits(text string) bool { return strings.Trim(text, "+-.0123456789eE") == "" }

// decimal returns the value of a numeral, exact for every integer of 64 bits and everything near one; infinite when no double
// has room for it.
func decimal(text string) *big.Float {
	if v, _ := strconv.ParseFloat(text, 64); math.IsInf(v, 0) {
		return new(big.Float).SetInf(v < 0)
	}
	v, _, err := big.ParseFloat(text, 10, 256, big.ToNearestEven)
	if err != nil {
		return new(big.Float)
	}
	return v
}

// Limits returns the lowest and highest floating-point numbers within the range of an integer type.
func Limits(fieldType string) (low, high float64) {
	switch fieldType {
	case "unsigned_long":
		return 0, math.Nextafter(1<<64, 0)
	case "long":
		return math.MinInt64, math.Nextafter(1<<63, 0)
	default:
		least, most := limits(fieldType)
		return float64(least), float64(most)
	}
}

// limits returns the range of an integer type of at most 64 bits with a sign.
func limits(fieldType string) (low, high int64) {
	switch fieldType {
	case "byte":
		return math.MinInt8, math.MaxInt8
	case "short":
		return math.MinInt16, math.MaxInt16
	case "integer":
		return math.MinInt32, math.MaxInt32
	default:
		return math.MinInt64, math.MaxInt64
	}
}

func inRange(fieldType string, v int64) bool {
	low, high := limits(fieldType)
	return low <= v && v <= high
}

// roundToType returns the nearest value of a floating-point type, infinite when that is out of its range.
func roundToType(fieldType string, v float64) float64 {
	switch fieldType {
	case "float":
		return float64(float32(v))
	case "half_float":
		return roundHalfFloat(v)
	default:
		return v
	}
}

// roundHalfFloat rounds to the 11 significant bits of a half_float.
func roundHalfFloat(v float64) float64 {
	single := float64(float32(v))
	size := math.Abs(single)
	if size == 0 || math.IsInf(size, 0) || math.IsNaN(size) {
		return single
	}
	step := math.Ldexp(1, max(math.Ilogb(size), -14)-10)
	half := math.RoundToEven(size/step) * step
	if half > 65504 {
		half = math.Inf(1)
	}
	return math.Copysign(half, single)
}

const signBit = 1 << 63

// SignedKey returns a number with the order of integers.
func SignedKey(v int64) uint64 { return uint64(v) ^ signBit }

// Signed returns the integer of a SignedKey.
func Signed(key uint64) int64 { return int64(key ^ signBit) }

// FloatKey returns a number with the order of floating-point numbers; the two zeros are equal.
func FloatKey(v float64) uint64 {
	if v == 0 {
		return signBit
	}
	bits := math.Float64bits(v)
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

// FloatOf returns the number of a FloatKey.
func FloatOf(key uint64) float64 {
	if key&signBit != 0 {
		return math.Float64frombits(key &^ signBit)
	}
	return math.Float64frombits(^key)
}

// Millis returns the millisecond that contains the instant of a date_nanos.
func Millis(key uint64) int64 {
	ns := Signed(key)
	if ns < 0 && ns%1e6 != 0 {
		return ns/1e6 - 1
	}
	return ns / 1e6
}

// fitsNanos reports whether an instant can be expressed in 64 bits of nanoseconds since 1970.
func fitsNanos(t time.Time) bool {
	return !t.Before(time.Unix(0, math.MinInt64)) && !t.After(time.Unix(0, math.MaxInt64))
}
