package sqon

import (
	"net/netip"
	"strconv"
	"strings"
)

// values checks that the values can be such of the field's type.
func (c *checker) values(n *Node, fieldType string) {
	class := classOf(fieldType)
	if !class.particular() || n.Op == Wildcard {
		return
	}
	for i, v := range n.Values {
		message := class.refusal(n.Op, v)
		if message == "" {
			continue
		}
		if len(n.Values) == 1 {
			// It may have stood without a list; the value as a whole is there either way.
			i = -1
		}
		c.add(valuePointer(n, i), KeywordValue, message)
		if c.full() {
			return
		}
	}
}

// particular reports whether a class has not every text as a value.
func (c class) particular() bool {
	return c == numberClass || c == dateClass || c == booleanClass || c == addressClass
}

// refusal says why v is no value that an operator can compare with those of a class, "" when it is one.
func (c class) refusal(op Operator, v Value) string {
	if op.shape() == listShape {
		switch term := v.Term(); term.Kind {
		case TermText:
			v.Text = term.Text
		case TermPattern:
			return excerpt(v.Text) + " is a pattern, which is for texts alone"
		default:
			return ""
		}
	}
	if c.holds(v) {
		return ""
	}
	return excerpt(v.Text) + " is " + c.lacks()
}

// holds reports whether v can be a value of a class of types.
func (c class) holds(v Value) bool {
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

// isNumeral reports whether a text is a decimal numeral as all numeric types of the search engine read it: an optional sign,
// digits that may begin with zeros, with an optional point before, between or behind them, and an optional exponent. What
// its parsers of fractions alone allow around that, white space and the suffixes of a Java literal, is refused, and so is
// what is not finite.
func isNumeral(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) && strings.IndexByte("+-.eE", text[i]) < 0 {
			return false
		}
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// lacks says what a value is not that no value of a class can be.
func (c class) lacks() string {
	switch c {
	case numberClass:
		return "no number"
	case dateClass:
		return "no ISO 8601 date and no number of milliseconds"
	case addressClass:
		return "no IP address"
	default:
		return "neither true nor false"
	}
}
