package sqon

import (
	"net/netip"
	"strconv"
	"strings"
)

// values checks that the values are valid for the field's type.
func (c *checker) values(n *Node, fieldType string) {
	class := classOf(fieldType)
	if !class.restricted() || n.Op == Wildcard {
		return
	}
	for i, v := range n.Values {
		message := class.mismatch(n.Op, v)
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

// restricted reports whether only some texts are values of a class.
func (c class) restricted() bool {
	return c == numberClass || c == dateClass || c == booleanClass || c == addressClass
}

// mismatch returns why an operator cannot compare v with values of a class, "" when it can.
func (c class) mismatch(op Operator, v Value) string {
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
	if c.accepts(v) {
		return ""
	}
	return excerpt(v.Text) + " is " + c.expected()
}

// accepts reports whether v can be a value of a class.
func (c class) accepts(v Value) bool {
	switch c {
	case numberClass:
		return isNumeral(v.Text)
	case dateClass:
		return v.isDate()
	case booleanClass:
		return v.Text == "true" || v.Text == "false" || v.Text == "1" || v.Text == "0"
	case addressClass:
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

// expected returns what a value that a class does not accept is not, for a message.
func (c class) expected() string {
	switch c {
	case numberClass:
		return "not a number"
	case dateClass:
		return "neither an ISO 8601 date nor a number of milliseconds"
	case addressClass:
		return "not an IP address"
	default:
		return "neither true nor false"
	}
}
