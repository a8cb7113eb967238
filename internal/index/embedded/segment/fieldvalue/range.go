package fieldvalue

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"tutti/internal/base/isodate"
	"tutti/internal/base/jsontext"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// A range is stored as the text of its two ends, both included and of equal length, whose order as bytes is that of the values: an IP
// address has its 16 bytes, anything else the 8 bytes of its key, most significant first.

// DayFormat is the only format of a date_range besides the default one.
const DayFormat = "yyyy-MM-dd"

// KeyEnd returns the end of a range for a key (query.Key).
func KeyEnd(key uint64) string { return string(binary.BigEndian.AppendUint64(nil, key)) }

// AddressEnd returns the end of a range for an IP address.
func AddressEnd(address netip.Addr) string {
	end := address.As16()
	return string(end[:])
}

// RangeEnds returns the ends of a stored range.
func RangeEnds(text []byte) (lo, hi []byte) { return text[:len(text)/2], text[len(text)/2:] }

// checkRange is Check for ranges.
func checkRange(f *mapping.Field, kind document.Kind, raw []byte) error {
	if !query.Ranged(string(f.Type)) || kind == document.KindNull {
		return nil
	}
	_, err := newRangeReader(f).read(kind, raw)
	return err
}

// rangeReader reads the values of a field of ranges as Elasticsearch does: the later of two bounds of one side wins.
type rangeReader struct {
	end query.Field
	// days is set when dates must have DayFormat.
	days bool
}

func newRangeReader(f *mapping.Field) rangeReader {
	end := query.Field{Type: string(f.Type)}.End()
	return rangeReader{end: end, days: string(f.Params["format"]) == `"`+DayFormat+`"`}
}

// read returns the stored form of a value.
func (r rangeReader) read(kind document.Kind, raw []byte) ([]byte, error) {
	if kind == document.KindString && r.end.Type == "ip" {
		return r.network(string(raw))
	}
	if kind != document.KindObject {
		return nil, errors.New("a range must be an object with gt, gte, lt and lte")
	}
	var ends rangeEnds
	var failed error
	jsontext.Members(raw, 0, func(name []byte, escaped bool, value jsontext.Span) bool {
		if escaped {
			name = jsontext.AppendUnescaped(nil, name)
		}
		failed = r.bound(string(name), value.Of(raw), &ends)
		return failed == nil
	})
	low, high := r.all()
	lo, hi := ends.lo.or(low, 1), ends.hi.or(high, -1)
	if failed == nil && lo > hi {
		failed = errors.New("the lower bound of the range is above the upper one")
	}
	return []byte(lo + hi), failed
}

// rangeEnds are the bounds of a range while it is read.
type rangeEnds struct{ lo, hi rangeEnd }

// rangeEnd is the end of a range by the bounds of one side that were read: at is "" if all were null, and open is set if the last one excludes its
// value.
type rangeEnd struct {
	at   string
	open bool
}

// or returns the end, without one the outermost, and that moved by step if it is excluded.
func (e rangeEnd) or(outermost string, step int) string {
	if e.at != "" || !e.open {
		return cmp.Or(e.at, outermost)
	}
	n := new(big.Int).SetBytes([]byte(outermost))
	return string(n.Add(n, big.NewInt(int64(step))).FillBytes(make([]byte, len(outermost))))
}

// all returns the ends of a range without bounds.
func (r rangeReader) all() (lo, hi string) {
	if r.end.Type == "ip" {
		return strings.Repeat("\x00", 16), strings.Repeat("\xff", 16)
	}
	low, high, _ := query.KeyRange(r.end, query.Bound{}, query.Bound{})
	return KeyEnd(low), KeyEnd(high)
}

// bound sets the end of a range that a member is.
func (r rangeReader) bound(name string, raw []byte, ends *rangeEnds) error {
	end := &ends.lo
	switch name {
	case "lt", "lte":
		end = &ends.hi
	case "gt", "gte":
	default:
		return fmt.Errorf("a range has no bound %q", name)
	}
	end.open = name == "gt" || name == "lt"
	text, quoted := string(raw), raw[0] == '"'
	if quoted {
		text = string(jsontext.AppendUnescaped(nil, raw[1:len(raw)-1]))
	}
	var err error
	switch {
	case text == "null" && !quoted:
	case raw[0] == '{', raw[0] == '[', raw[0] == 't', raw[0] == 'f', r.end.Type == "ip" && !quoted:
		err = fmt.Errorf("the bound %s of a range has no value of type %s", name, r.end.Type)
	case r.end.Type == "ip":
		end.at, err = addressBound(name, text)
	case query.Dated(r.end.Type):
		end.at, err = r.dateBound(name, text, quoted)
	default:
		end.at, err = r.numberBound(name, text, quoted)
	}
	return err
}

// network returns the range of the addresses of a network.
func (r rangeReader) network(text string) ([]byte, error) {
	address, length, _ := strings.Cut(text, "/")
	bits, noNumber := strconv.ParseUint(strings.TrimPrefix(length, "+"), 10, 8) // zeros and a plus may precede it
	prefix, err := netip.ParsePrefix(address + "/" + strconv.FormatUint(bits, 10))
	if noNumber != nil || err != nil || prefix.Addr().Is4In6() {
		return nil, errors.New("the range is neither an object nor a network such as 10.0.0.0/8")
	}
	lo := prefix.Masked().Addr().As16()
	if prefix.Addr().Is4() {
		bits += 96
	}
	hi := lo
	for bit := bits; bit < 128; bit++ {
		hi[bit/8] |= 0x80 >> (bit % 8)
	}
	return append(lo[:], hi[:]...), nil
}

var errNoAddress = errors.New("beyond the last address")

func addressBound(name, text string) (string, error) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return "", fmt.Errorf("the bound %s of a range is not an IP address", name)
	}
	address = netip.AddrFrom16(address.As16())
	switch name {
	case "gt":
		address = address.Next()
	case "lt":
		address = address.Prev()
	}
	if !address.IsValid() {
		return "", fmt.Errorf("the bound %s of a range is %w", name, errNoAddress)
	}
	return AddressEnd(address), nil
}

// dateBound returns a bound of dates in milliseconds: gt and lte are about the end of a date that is a period, for a year, a month and a
// week that of its first day, as in Elasticsearch.
func (r rangeReader) dateBound(name, text string, quoted bool) (string, error) {
	kind := document.KindNumber
	if quoted {
		kind = document.KindString
	}
	if r.days && (!quoted || len(text) != len(DayFormat) || !document.IsDay(text)) {
		return "", fmt.Errorf("the bound %s of a range has not the format %s", name, DayFormat)
	}
	millis, whole := wholeMillis(text)
	if date, ok := isodate.Parse(text); ok && !date.Extended {
		from, to := date.Range()
		millis = from.UnixMilli()
		if name == "gt" || name == "lte" {
			if day := from.AddDate(0, 0, 1); day.Before(to) {
				to = day
			}
			millis = to.Add(-1).UnixMilli()
		}
	} else if !whole {
		if !document.IsDate(kind, []byte(text)) {
			return "", fmt.Errorf("the bound %s of a range is not a date", name)
		}
		at, _ := isodate.Time(text)
		millis = at.UnixMilli()
	}
	if name == "gt" && millis == math.MaxInt64 {
		return "", fmt.Errorf("the bound %s of a range excludes all dates", name)
	}
	switch name {
	case "gt":
		millis++
	case "lt":
		millis--
	}
	return KeyEnd(query.SignedKey(millis)), nil
}

// wholeMillis returns the number of milliseconds of a text of up to 19 digits; not ok for the lowest of 64 bits, which Elasticsearch rejects too.
func wholeMillis(text string) (millis int64, ok bool) {
	if digits := strings.TrimPrefix(text, "-"); len(digits) > 19 || digits == "" || digits[0]-'0' > 9 {
		return 0, false
	}
	millis, err := strconv.ParseInt(text, 10, 64)
	return millis, err == nil && millis != math.MinInt64
}

// number returns the number of a bound in decimal, "" for none: all types but long are read as Java reads a double, and a long with a fraction or
// an exponent that is no text as one.
func (r rangeReader) number(text string, quoted bool) string {
	of := fieldtype.Of(r.end.Type)
	if !of.Lenient() && (quoted || !strings.ContainsAny(text, ".eE")) {
		return text
	}
	v, is := doubleOf(text)
	switch low, high := of.Integers(); {
	case is && math.IsNaN(v) && of.Integral(): // as Java converts it
		return "0"
	case !is, math.IsNaN(v), of.Integral() && (v < float64(low) || v > float64(high)):
		return ""
	case of.Integral() && v == float64(high): // 1<<63 is the highest long
		return strconv.FormatInt(high, 10)
	case of.Integral():
		return strconv.FormatInt(int64(v), 10)
	default:
		return jsontext.Number(v)
	}
}

// numberBound returns a bound of numbers, which are truncated or rounded to the type as other values are.
func (r rangeReader) numberBound(name, text string, quoted bool) (string, error) {
	key, ok := query.Key(r.end, r.number(text, quoted))
	low, high, _ := query.KeyRange(r.end, query.Bound{}, query.Bound{})
	switch {
	case !ok:
		return "", fmt.Errorf("the bound %s of a range is not a value of type %s", name, r.end.Type)
	case name == "gt" && key == high, name == "lt" && key == low:
		return "", fmt.Errorf("the bound %s of a range excludes all values of type %s", name, r.end.Type)
	case name == "gt" && key < math.MaxUint64:
		key++
	case name == "lt" && key > 0:
		key--
	}
	return KeyEnd(key), nil
}
