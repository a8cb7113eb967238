package elastic

import (
	"strconv"

	"tutti/internal/jsontext"
)

// jsonReader reads the cluster's responses sequentially, without decoding the parts that are passed on unchanged. After a syntax
// error it is bad and reads nothing more.
type jsonReader struct {
	data []byte
	at   int
	bad  bool
}

// peek returns the next byte that is not white space, 0 at the end.
func (c *jsonReader) peek() byte {
	for ; !c.bad && c.at < len(c.data); c.at++ {
		switch b := c.data[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// skip reads b if it is the next byte, and reports whether it was.
func (c *jsonReader) skip(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

// object reads an object and calls member at each value with the raw name. It skips values that member does not read.
func (c *jsonReader) object(member func(name []byte)) {
	if !c.skip('{') {
		c.bad = true
		return
	}
	if c.skip('}') {
		return
	}
	for !c.bad {
		name := c.text()
		if !c.skip(':') {
			c.bad = true
			return
		}
		c.peek()
		from := c.at
		member(name)
		if c.at == from {
			c.raw()
		}
		if c.skip('}') {
			return
		}
		if !c.skip(',') {
			c.bad = true
		}
	}
}

// array reads an array and calls element at each value. It skips values that element does not read.
func (c *jsonReader) array(element func()) {
	if !c.skip('[') {
		c.bad = true
		return
	}
	if c.skip(']') {
		return
	}
	for !c.bad {
		c.peek()
		from := c.at
		element()
		if c.at == from {
			c.raw()
		}
		if c.skip(']') {
			return
		}
		if !c.skip(',') {
			c.bad = true
		}
	}
}

// text reads a string and returns the raw bytes between its quotes.
func (c *jsonReader) text() []byte {
	if c.peek() != '"' {
		c.bad = true
		return nil
	}
	from := c.at + 1
	if c.at, _ = jsontext.String(c.data, c.at); c.at <= from || c.data[c.at-1] != '"' {
		c.at, c.bad = len(c.data), true
		return nil
	}
	return c.data[from : c.at-1]
}

// string reads and decodes a string.
func (c *jsonReader) string() string {
	if c.peek() != '"' {
		c.bad = true
		return ""
	}
	return jsontext.Unquote(c.raw())
}

// raw reads any value and returns its bytes.
func (c *jsonReader) raw() []byte {
	switch c.peek() {
	case '"':
		from := c.at
		c.text()
		return c.data[from:c.at]
	case '{', '[':
		return c.container()
	case 0:
		c.bad = true
		return nil
	default:
		return c.scalar()
	}
}

// container reads an object or an array; it only searches its end. A missing end is detected by the enclosing container.
func (c *jsonReader) container() []byte {
	from := c.at
	c.at = jsontext.Container(c.data, from)
	return c.data[from:c.at]
}

// scalar reads a number, true, false or null.
func (c *jsonReader) scalar() []byte {
	from := c.at
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case ',', '}', ']', ':', ' ', '\t', '\r', '\n':
		case '"', '{', '[':
			c.bad = true
			return nil
		default:
			c.at++
			continue
		}
		break
	}
	if c.at == from {
		c.bad = true
	}
	return c.data[from:c.at]
}

// count reads an integer.
func (c *jsonReader) count() int64 {
	n, err := strconv.ParseInt(string(c.raw()), 10, 64)
	if err != nil {
		c.bad = true
	}
	return n
}

// number reads a number; 0 for null.
func (c *jsonReader) number() float64 {
	raw := c.raw()
	if string(raw) == "null" {
		return 0
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		c.bad = true
	}
	return v
}

// boolean reads a value and reports whether it is true.
func (c *jsonReader) boolean() bool { return string(c.raw()) == "true" }
