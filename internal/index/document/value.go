package document

import (
	"bytes"
	"math"
	"net/netip"
	"strconv"

	"tutti/internal/base/isodate"
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
)

// MaxTermBytes is the length of the longest term that the engine can index; a longer keyword without ignore_above is rejected.
const MaxTermBytes = 32766

// scalar checks a string, a number or a boolean against f and passes it to the sink.
func (c *Checker) scalar(f *mapping.Field, kind Kind, raw []byte, escaped bool) bool {
	text := raw
	if escaped {
		text = jsontext.AppendUnescaped(nil, raw)
	}
	t := fieldtype.Of(f.Type)
	switch {
	case t.Group == fieldtype.Container && f.Disabled():
		return true
	case t.Group == fieldtype.Container:
		return c.reject(core.TypeParsing,
			"object mapping tried to parse the field as "+string(f.Type)+", but found a concrete value")
	case t.Group == fieldtype.Flattened:
		return c.reject(core.TypeParsing, "failed to parse field of type [flattened]: found a concrete value")
	case len(text) > MaxTermBytes && f.Type == mapping.Keyword && f.Params["ignore_above"] == nil:
		return c.reject(core.TypeIllegalArgument, longTermReason+string(bytes.Join(c.path, []byte(".")))+
			`" (whose UTF8 encoding is longer than the max length 32766), all of which were skipped.`)
	case !c.takes(f, t, kind, text) && string(f.Params["ignore_malformed"]) != "true":
		return c.reject(core.TypeParsing, "failed to parse field of type ["+string(f.Type)+"]: value "+preview(text))
	}
	if !c.opaque(f, kind, raw) {
		return false
	}
	if t.Fractional() && kind == KindNumber && inexact(text) && f.Undeclared() {
		return c.reject(core.TypeParsing, "failed to parse field of type ["+string(f.Type)+"]: "+preview(text)+" "+inexactReason)
	}
	if c.sink != nil {
		c.sink.Value(f, kind, raw)
	}
	return true
}

// takes reports whether a field accepts a scalar. Groups without a rule accept any.
func (c *Checker) takes(f *mapping.Field, t *fieldtype.Type, kind Kind, text []byte) bool {
	switch t.Group {
	case fieldtype.Integer, fieldtype.Unsigned:
		return isInteger(kind, text, t)
	case fieldtype.Float, fieldtype.Scaled:
		return isDecimal(kind, text)
	case fieldtype.Boolean:
		return isBoolean(kind, text)
	case fieldtype.Millis, fieldtype.Nanos:
		switch {
		case f.Params["format"] != nil && kind != KindBoolean:
			return c.inFormat(f, t, kind, text)
		case t.Group == fieldtype.Nanos:
			return isNanos(kind, text)
		default:
			return IsDate(kind, text)
		}
	case fieldtype.Address:
		return kind == KindString && isAddress(text)
	default:
		return true
	}
}

// formatKey is the parameter of a format at a type of fields: the default format depends on it.
type formatKey struct {
	of  *fieldtype.Type
	raw string
}

// inFormat reports whether a value is a date in the format of its field. A format that is not read here may have any text.
func (c *Checker) inFormat(f *mapping.Field, t *fieldtype.Type, kind Kind, text []byte) bool {
	key := formatKey{t, string(f.Params["format"])}
	format, known := c.formats[key]
	if !known {
		if format = f.DateFormat(); c.formats == nil {
			c.formats = map[formatKey]*isodate.Format{}
		}
		c.formats[key] = format
	}
	if format == nil {
		return t.Group == fieldtype.Nanos && isNanos(kind, text) || t.Group == fieldtype.Millis && IsDate(kind, text)
	}
	if _, unread := format.Unread(); unread {
		return true
	}
	from, _, _, ok := format.Parse(string(text))
	return ok && (t.Group != fieldtype.Nanos || withinNanos(from))
}

func isBoolean(kind Kind, text []byte) bool {
	switch kind {
	case KindBoolean:
		return true
	case KindString:
		return len(text) == 0 || string(text) == "true" || string(text) == "false"
	default:
		return false
	}
}

// preview quotes the start of a value for a message.
func preview(text []byte) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

// isInteger follows Elasticsearch's coercion: numbers in strings are accepted, fractions are truncated, an empty string is null.
func isInteger(kind Kind, text []byte, t *fieldtype.Type) bool {
	if kind == KindBoolean {
		return false
	}
	if kind == KindString && len(text) == 0 {
		return true
	}
	long := t.Group == fieldtype.Integer && t.Bits == 64
	if long && isShortInteger(text) {
		return true
	}
	if t.Lenient() {
		text = trimJavaDecimal(text)
	}
	if !isNumeral(text) {
		return false
	}
	if _, err := strconv.ParseInt(string(text), 10, 64); err == nil && long {
		return true
	}
	if _, err := strconv.ParseUint(string(text), 10, 64); err == nil && t.Group == fieldtype.Unsigned {
		return true
	}
	low, high := t.Limits()
	v, err := strconv.ParseFloat(string(text), 64)
	return err == nil && v >= low && v <= high
}

// isShortInteger reports whether text is an integer of so few digits that it fits 64 bits.
func isShortInteger(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	return len(text) > 0 && len(text) <= 18 && digits(text, 0) == len(text)
}

func isDecimal(kind Kind, text []byte) bool {
	if kind == KindBoolean {
		return false
	}
	if kind == KindString && len(text) == 0 {
		return true
	}
	if isShortInteger(text) {
		return true
	}
	if text = trimJavaDecimal(text); !isNumeral(text) {
		return false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return err == nil && !math.IsInf(v, 0)
}

// trimJavaDecimal removes what Java's parser of a double accepts around a number: white space, and the suffix of a literal. In
// Elasticsearch all numeric types but the 64-bit integers are parsed by it.
func trimJavaDecimal(text []byte) []byte {
	text = bytes.Trim(text, " \t\r\n")
	if n := len(text) - 1; n > 0 && bytes.IndexByte([]byte("dDfF"), text[n]) >= 0 {
		return text[:n]
	}
	return text
}

// isNumeral reports whether text has only characters of decimal numbers: it excludes Infinity and hexadecimal.
func isNumeral(text []byte) bool {
	for _, b := range text {
		if b-'0' > 9 && b != '-' && b != '+' && b != '.' && b != 'e' && b != 'E' {
			return false
		}
	}
	return len(text) > 0
}

func isAddress(text []byte) bool {
	_, err := netip.ParseAddr(string(text))
	return err == nil
}
