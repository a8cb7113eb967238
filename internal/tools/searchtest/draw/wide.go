package draw

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
)

// letterPool is the letters of random texts: their orders by UTF-8, by UTF-16, by code in lower case and by language differ.
var letterPool = []rune("aAbBzZéÉßK0 9.-_~\u00a0ΣİǅЯ東｡\ufffd🧬\U0010fffd")

// wide returns a random value of a type, as JSON, from all of its range; "" for a type with few values.
func (d Choices) wide(t mapping.Type) string {
	row := fieldtype.Of(t)
	switch row.Group {
	case fieldtype.Exact:
		return Quoted(d.text())
	case fieldtype.Flattened:
		return `{"k":` + Quoted(d.text()) + `,"o":{"p":[` + Quoted(d.text()) + `]}}`
	case fieldtype.Address:
		return Quoted(d.address())
	case fieldtype.Integer:
		x := int64(d.Uint64()) >> (64 - int(row.Bits) + d.IntN(int(row.Bits)))
		if row.Bits == 64 {
			x >>= 5 // engines add numbers beyond 64 bits differently
		}
		return strconv.FormatInt(x, 10)
	case fieldtype.Unsigned:
		return strconv.FormatUint(d.Uint64()>>d.IntN(64), 10)
	case fieldtype.Scaled:
		return fmt.Sprintf("%d.%03d", d.IntN(2_000_000)-1_000_000, d.IntN(1000))
	case fieldtype.Float:
		return d.float(row.Bits)
	case fieldtype.Millis:
		return Quoted(time.UnixMilli(d.Int64N(315_000_000_000_000) - 62_000_000_000_000).UTC().Format("2006-01-02T15:04:05.000Z"))
	case fieldtype.Nanos:
		return Quoted(time.Unix(d.Int64N(9_223_372_036), d.Int64N(1e9)).UTC().Format("2006-01-02T15:04:05.000000000Z"))
	default:
		return ""
	}
}

func (d Choices) text() string {
	var b strings.Builder
	for range d.IntN(5) {
		b.WriteRune(Pick(d, letterPool))
	}
	return b.String()
}

func (d Choices) address() string {
	var bits [16]byte
	for i := range bits {
		bits[i] = byte(d.Uint32() >> (24 + d.IntN(8)))
	}
	if d.Percent(60) {
		return netip.AddrFrom4([4]byte(bits[:4])).String()
	}
	return netip.AddrFrom16(bits).String()
}

// float returns a random finite number of a floating-point type.
func (d Choices) float(bits uint8) string {
	var x float64
	switch bits {
	case 16:
		x = math.Ldexp(float64(d.Between(-2047, 2047)), d.Between(-24, 5))
	case 32:
		x = float64(math.Float32frombits(d.Uint32()))
	default:
		x = math.Float64frombits(d.Uint64())
	}
	if raw, err := json.Marshal(x); err == nil && x != 0 {
		return string(raw)
	}
	return "0.25" // it is infinite, not a number, or a negative zero
}

// nearValues returns the values of the fields in "near".
func nearValues(t mapping.Type) []string {
	switch row := fieldtype.Of(t); {
	case row.Date():
		return []string{`0`, `1`, `999`, `1000`, `"1969-12-31T23:59:59.999Z"`}
	case row.Fractional():
		return []string{`0`, `-0.0`, `0.5`, `-0.5`, `2`, `2.5`, `9.75`}
	default:
		return []string{`0`, `-1`, `1`, `2`, `9`, `10`}
	}
}
