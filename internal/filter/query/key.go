package query

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/jsontext"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/sqon"
)

// groupOf returns the group of a type.
func groupOf(fieldType string) fieldtype.Group { return fieldtype.Of(fieldType).Group }

// Ranged reports whether values of a type are ranges: they are matched by a value within them, and have no order.
func Ranged(fieldType string) bool { return groupOf(fieldType) == fieldtype.Range }

// End returns the field of the ends of a field of ranges; any other field unchanged.
func (f Field) End() Field {
	f.Type = fieldtype.End(f.Type)
	return f
}

// Keyed reports whether values of a type have keys; values of all other types are texts.
func Keyed(fieldType string) bool { return fieldtype.Of(fieldType).Keyed() }

// Dated reports whether values of a type are instants.
func Dated(fieldType string) bool { return fieldtype.Of(fieldType).Date() }

// Analyzed reports whether values of a type are analyzed: they are matched by terms and have no order.
func Analyzed(fieldType string) bool { return fieldtype.Of(fieldType).Analyzed() }

// Countable reports whether values of a type can be counted and sorted.
func Countable(fieldType string) bool { return fieldtype.Of(fieldType).Countable() }

// Searchable reports whether values of a type can be searched.
func Searchable(fieldType string) bool {
	return fieldtype.Of(fieldType).Searchable() || Ranged(fieldType)
}

// Key returns a value of a numeric, date or boolean type as a number with the order of the values. text is a value in a document or
// one of Node.Terms. It returns false when text is not a value of the type. Integers are truncated and floating-point types round,
// as the engine does with documents. Dates are milliseconds, date_nanos nanoseconds since 1970.
func Key(f Field, text string) (uint64, bool) {
	switch groupOf(f.Type) {
	case fieldtype.Boolean:
		return boolKey(text)
	case fieldtype.Integer:
		v, ok := integer(text)
		return SignedKey(v), ok && inRange(f.Type, v)
	case fieldtype.Unsigned:
		return unsigned(text)
	case fieldtype.Float:
		v, err := strconv.ParseFloat(text, 64)
		v = roundToType(f.Type, v)
		return FloatKey(v), err == nil && digits(text) && !math.IsInf(v, 0)
	case fieldtype.Scaled:
		v, err := strconv.ParseFloat(text, 64)
		v = math.Floor(v*f.Scale + 0.5)
		return SignedKey(int64(v)), err == nil && digits(text) && math.Abs(v) < 1<<63
	case fieldtype.Millis:
		from, ok := instant(f, text)
		return SignedKey(from.UnixMilli()), ok
	case fieldtype.Nanos:
		from, ok := instant(f, text)
		return SignedKey(from.UnixNano()), ok && fitsNanos(from)
	default:
		return 0, false
	}
}

// instant returns the first instant of a date in a document.
func instant(f Field, text string) (time.Time, bool) {
	if f.Format != nil {
		from, _, _, ok := f.Format.Parse(text)
		return from, ok
	}
	from, _, err := sqon.ParseDate(text)
	return from, err == nil
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
	switch groupOf(fieldType) {
	case fieldtype.Boolean:
		return 0, 1, true
	case fieldtype.Integer:
		low, high := fieldtype.Of(fieldType).Integers()
		return SignedKey(low), SignedKey(high), true
	case fieldtype.Float:
		return FloatKey(math.Inf(-1)), FloatKey(math.Inf(1)), true
	case fieldtype.Unsigned, fieldtype.Scaled, fieldtype.Millis, fieldtype.Nanos:
		return 0, math.MaxUint64, true
	default:
		return 0, 0, false
	}
}

// boundKey returns the outermost key within a bound, the highest of an upper one; false when there is none.
func boundKey(f Field, b Bound, upper bool) (uint64, bool) {
	switch groupOf(f.Type) {
	case fieldtype.Integer:
		v, fits := integerBound(b, upper, math.MinInt64, math.MaxInt64)
		return SignedKey(v.Int64()), fits
	case fieldtype.Unsigned:
		v, fits := integerBound(b, upper, 0, math.MaxUint64)
		return v.Uint64(), fits
	case fieldtype.Scaled:
		v := decimal(b.Number)
		b.Number = v.Mul(v, new(big.Float).SetFloat64(f.Scale)).Text('g', 60)
		scaled, fits := integerBound(b, upper, math.MinInt64, math.MaxInt64)
		return SignedKey(scaled.Int64()), fits
	case fieldtype.Float:
		v, _ := strconv.ParseFloat(b.Number, 64) // infinite when out of range, as intended
		return floatBound(roundToType(f.Type, v), b.Inclusive, upper)
	case fieldtype.Millis:
		return timeBound(b.Time, b.Inclusive, upper), true
	case fieldtype.Nanos:
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
	switch groupOf(f.Type) {
	case fieldtype.Integer, fieldtype.Millis:
		return float64(Signed(key))
	case fieldtype.Nanos:
		return float64(Millis(key))
	case fieldtype.Float:
		return FloatOf(key)
	case fieldtype.Scaled:
		return float64(Signed(key)) / f.Scale
	default:
		return float64(key)
	}
}

// Computed returns the number by which engines count a value v of a field in histograms: of a scaled_float the stored integer multiplied by
// the reciprocal of the factor, which may be next to the value (1.1300000000000001 for 1.13). It is v for other types.
func Computed(f Field, v float64) float64 {
	if f.Scale == 0 {
		return v
	}
	return math.Round(v*f.Scale) * (1 / f.Scale)
}

// Value returns the value of a field for a number from Computed.
func Value(f Field, computed float64) float64 {
	if f.Scale == 0 {
		return computed
	}
	return math.Round(computed*f.Scale) / f.Scale
}

// Text returns the value of a key in the form of Bucket.Key.
func Text(f Field, key uint64) string {
	switch groupOf(f.Type) {
	case fieldtype.Boolean:
		return strconv.FormatBool(key == 1)
	case fieldtype.Integer, fieldtype.Millis:
		return strconv.FormatInt(Signed(key), 10)
	case fieldtype.Nanos:
		return strconv.FormatInt(Millis(key), 10)
	case fieldtype.Unsigned:
		return strconv.FormatUint(key, 10)
	default:
		return jsontext.Number(Number(f, key))
	}
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

func inRange(fieldType string, v int64) bool {
	low, high := fieldtype.Of(fieldType).Integers()
	return low <= v && v <= high
}

// roundToType returns the nearest value of a floating-point type, infinite when that is out of its range.
func roundToType(fieldType string, v float64) float64 {
	switch t := fieldtype.Of(fieldType); {
	case t.Group != fieldtype.Float || t.Bits == 64:
		return v
	case t.Bits == 16:
		return roundHalfFloat(v)
	default:
		return float64(float32(v))
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
