package dsl

import (
	"math"
	"strings"
	"time"

	"tutti/internal/filter/query"
	"tutti/internal/jsontext"
)

// appendRange appends the query of rows with a value within n's bounds. The cluster rejects bounds outside a type's range and
// rounds dates in its own way, so bounds are first converted to values of the type.
func appendRange(dst []byte, n *query.Node) []byte {
	bounds, ok := boundsOf(n)
	if !ok {
		return append(dst, matchNone...)
	}
	if len(bounds.limits) == 0 {
		return appendExists(dst, n.Field)
	}
	dst = append(dst, `{"range":{`...)
	dst = jsontext.AppendRawString(dst, n.Field.Path)
	dst = append(dst, ":{"...)
	for i, limit := range bounds.limits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, limit.op...)
		dst = append(dst, `":"`...)
		dst = append(dst, limit.text...)
		dst = append(dst, '"')
	}
	if bounds.format != "" {
		dst = append(dst, `,"format":"`...)
		dst = append(dst, bounds.format...)
		dst = append(dst, '"')
	}
	return append(dst, "}}}"...)
}

// rangeBounds are the bounds of a range query, none when all values match.
type rangeBounds struct {
	limits []rangeLimit
	// format is the format of dates.
	format string
}

type rangeLimit struct{ op, text string }

// boundsOf converts n's bounds for the cluster; false when no value can match.
func boundsOf(n *query.Node) (rangeBounds, bool) {
	switch {
	case !query.Keyed(n.Field.Type):
		return rangeBounds{}, false
	case n.Field.Type == dateNanos:
		return nanosBounds(n)
	case fractional(n.Field.Type) && n.Field.Scale == 0:
		return fractionBounds(n)
	}
	var b rangeBounds
	lo, hi, ok := query.KeyRange(n.Field, n.From, n.To)
	if !ok {
		return b, false
	}
	if query.Dated(n.Field.Type) {
		b.format = "epoch_millis"
	}
	if n.From.Set {
		b.limits = append(b.limits, rangeLimit{"gte", query.Text(n.Field, lo)})
	}
	if n.To.Set {
		b.limits = append(b.limits, rangeLimit{"lte", query.Text(n.Field, hi)})
	}
	return b, true
}

// fractionBounds converts the bounds for a fractional type, rounded as the type rounds. A bound outside the type's range is
// dropped, or excludes all values.
func fractionBounds(n *query.Node) (rangeBounds, bool) {
	var b rangeBounds
	for _, end := range []struct {
		query.Bound
		upper bool
	}{{n.From, false}, {n.To, true}} {
		if !end.Set {
			continue
		}
		key, fits := query.Key(n.Field, end.Number)
		switch negative := strings.HasPrefix(end.Number, "-"); {
		case fits:
			text := query.Literal(query.Number(n.Field, key))
			b.limits = append(b.limits, rangeLimit{comparison(end.upper, end.Inclusive), text})
		case negative == end.upper:
			return b, false
		}
	}
	return b, true
}

// nanosBounds converts the bounds for date_nanos.
func nanosBounds(n *query.Node) (rangeBounds, bool) {
	b := rangeBounds{format: "strict_date_optional_time_nanos"}
	firstNano, lastNano := time.Unix(0, 0), time.Unix(0, math.MaxInt64) // the type's range
	if n.From.Set {
		switch {
		case n.From.Time.After(lastNano):
			return b, false
		case !n.From.Time.Before(firstNano):
			b.limits = append(b.limits, rangeLimit{comparison(false, n.From.Inclusive), nanosText(n.From.Time)})
		}
	}
	if n.To.Set {
		switch {
		case n.To.Time.Before(firstNano):
			return b, false
		case !n.To.Time.After(lastNano):
			b.limits = append(b.limits, rangeLimit{comparison(true, n.To.Inclusive), nanosText(n.To.Time)})
		}
	}
	return b, true
}

// nanosText formats all nine digits: the cluster rounds missing ones.
func nanosText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

func comparison(upper, inclusive bool) string {
	switch {
	case upper && inclusive:
		return "lte"
	case upper:
		return "lt"
	case inclusive:
		return "gte"
	default:
		return "gt"
	}
}

// Highest values of fractional types.
const (
	maxFloat = math.MaxFloat32
	maxHalf  = 65504
)

// roundedUp returns the lowest value of a fractional type that is not below v, infinity when there is none. The cluster rounds
// the bounds of a range aggregation to the nearest value of the type.
func roundedUp(f query.Field, v float64) float64 {
	most := 0.0
	switch f.Type {
	case "float":
		most = maxFloat
	case "half_float":
		most = maxHalf
	default:
		return v
	}
	key, fits := query.Key(f, query.Literal(v))
	switch nearest := query.Number(f, key); {
	case !fits && v > 0:
		return math.Inf(1)
	case !fits && v < 0:
		return max(v, -most)
	case !fits:
		return v
	case nearest >= v:
		return nearest
	case f.Type == "float":
		return float64(math.Nextafter32(float32(nearest), float32(math.Inf(1))))
	default:
		return nextHalf(nearest)
	}
}

// nextHalf returns the next half_float after v, which must be one; infinity after the last.
func nextHalf(v float64) float64 {
	if v >= maxHalf {
		return math.Inf(1)
	}
	exponent := -14
	if v != 0 {
		exponent = max(math.Ilogb(v), exponent)
	}
	if v == -math.Ldexp(1, exponent) && exponent > -14 {
		exponent-- // towards zero the steps after a power of two are shorter
	}
	return v + math.Ldexp(1, exponent-10)
}
