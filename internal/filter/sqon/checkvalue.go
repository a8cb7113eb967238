package sqon

import (
	"net/netip"
	"strconv"
	"strings"

	"tutti/internal/base/isodate"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
)

// values checks that the values are valid for the field's type.
func (c *checker) values(n *Node, f Field) {
	t := fieldtype.Of(fieldtype.End(f.Type))
	if !restricted(t) || n.Op == Wildcard {
		return
	}
	for i, v := range n.Values {
		message := mismatch(t, f.Format, n.Op, v)
		if message == "" {
			continue
		}
		if len(n.Values) == 1 {
			// The value may have been written without a list; the pointer of the whole value is valid either way.
			i = -1
		}
		c.add(valuePointer(n, i), KeywordValue, message)
		if c.full() {
			return
		}
	}
}

// restricted reports whether only some texts are values of a type.
func restricted(t *fieldtype.Type) bool { return t.Keyed() || t.Group == fieldtype.Address }

// mismatch returns why an operator cannot compare v with values of a type, "" when it can.
func mismatch(t *fieldtype.Type, format *isodate.Format, op Operator, v Value) string {
	if op.contentKind() == listContent {
		switch term := v.Term(); term.Kind {
		case TermText:
			v.Text = term.Text
		case TermPattern:
			return excerpt(v.Text) + " is a pattern, which only text fields support"
		default:
			return ""
		}
	}
	if t.Date() && format != nil {
		if _, _, err := v.DateIn(format); err != nil {
			return core.MessageOf(err)
		}
		return ""
	}
	if accepts(t, v) {
		return ""
	}
	return excerpt(v.Text) + " is " + expected(t)
}

// accepts reports whether v can be a value of a type.
func accepts(t *fieldtype.Type, v Value) bool {
	switch {
	case t.Date():
		return v.isDate()
	case t.Ordered():
		return isNumeral(v.Text)
	case t.Keyed():
		return v.Text == "true" || v.Text == "false" || v.Text == "1" || v.Text == "0"
	case t.Group == fieldtype.Address:
		address, err := netip.ParseAddr(v.Text)
		return err == nil && address.Zone() == ""
	default:
		return true
	}
}

// isNumeral reports whether a text is a decimal number that all numeric types of the search engine accept: an optional sign,
// digits, which may start with zeros and have a point before, between or after them, and an optional exponent. It excludes white
// space and the suffixes of Java literals, which only some types accept, and infinite numbers.
func isNumeral(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) && strings.IndexByte("+-.eE", text[i]) < 0 {
			return false
		}
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// expected returns what a value that a type does not accept is not, for a message.
func expected(t *fieldtype.Type) string {
	switch {
	case t.Date():
		return "neither an ISO 8601 date nor a number of milliseconds"
	case t.Ordered():
		return "not a number"
	case t.Group == fieldtype.Address:
		return "not an IP address"
	default:
		return "neither true nor false"
	}
}
