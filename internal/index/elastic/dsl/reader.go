package dsl

import (
	"strconv"

	"tutti/internal/jsontext"
)

// Reader reads the cluster's responses sequentially, without decoding the parts that are passed on unchanged. After a syntax
// error it is bad and reads nothing more.
type Reader struct {
	Data []byte
	at   int
	Bad  bool
}

// Peek returns the next byte that is not white space, 0 at the end.
func (c *Reader) Peek() byte {
	for ; !c.Bad && c.at < len(c.Data); c.at++ {
		switch b := c.Data[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// skip reads b if it is the next byte, and reports whether it was.
func (c *Reader) skip(b byte) bool {
	if c.Peek() != b {
		return false
	}
	c.at++
	return true
}

// Object reads an object and calls member at each value with the raw name. It skips values that member does not read.
func (c *Reader) Object(member func(name []byte)) {
	if !c.skip('{') {
		c.Bad = true
		return
	}
	if c.skip('}') {
		return
	}
	for !c.Bad {
		name := c.text()
		if !c.skip(':') {
			c.Bad = true
			return
		}
		c.Peek()
		from := c.at
		member(name)
		if c.at == from {
			c.raw()
		}
		if c.skip('}') {
			return
		}
		if !c.skip(',') {
			c.Bad = true
		}
	}
}

// Array reads an array and calls element at each value. It skips values that element does not read.
func (c *Reader) Array(element func()) {
	if !c.skip('[') {
		c.Bad = true
		return
	}
	if c.skip(']') {
		return
	}
	for !c.Bad {
		c.Peek()
		from := c.at
		element()
		if c.at == from {
			c.raw()
		}
		if c.skip(']') {
			return
		}
		if !c.skip(',') {
			c.Bad = true
		}
	}
}

// text reads a string and returns the raw bytes between its quotes.
func (c *Reader) text() []byte {
	if c.Peek() != '"' {
		c.Bad = true
		return nil
	}
	from := c.at + 1
	if c.at, _ = jsontext.String(c.Data, c.at); c.at <= from || c.Data[c.at-1] != '"' {
		c.at, c.Bad = len(c.Data), true
		return nil
	}
	return c.Data[from : c.at-1]
}

// ReadString reads and decodes a string.
func (c *Reader) ReadString() string {
	if c.Peek() != '"' {
		c.Bad = true
		return ""
	}
	return jsontext.Unquote(c.raw())
}

// raw reads any value and returns its bytes.
func (c *Reader) raw() []byte {
	switch c.Peek() {
	case '"':
		from := c.at
		c.text()
		return c.Data[from:c.at]
	case '{', '[':
		return c.container()
	case 0:
		c.Bad = true
		return nil
	default:
		return c.scalar()
	}
}

// container reads an object or an array; it only searches its end. A missing end is detected by the enclosing container.
func (c *Reader) container() []byte {
	from := c.at
	c.at = jsontext.Container(c.Data, from)
	return c.Data[from:c.at]
}

// scalar reads a number, true, false or null.
func (c *Reader) scalar() []byte {
	from := c.at
	for c.at < len(c.Data) {
		switch c.Data[c.at] {
		case ',', '}', ']', ':', ' ', '\t', '\r', '\n':
		case '"', '{', '[':
			c.Bad = true
			return nil
		default:
			c.at++
			continue
		}
		break
	}
	if c.at == from {
		c.Bad = true
	}
	return c.Data[from:c.at]
}

// count reads an integer.
func (c *Reader) count() int64 {
	n, err := strconv.ParseInt(string(c.raw()), 10, 64)
	if err != nil {
		c.Bad = true
	}
	return n
}

// number reads a number; 0 for null.
func (c *Reader) number() float64 {
	raw := c.raw()
	if string(raw) == "null" {
		return 0
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		c.Bad = true
	}
	return v
}

// boolean reads a value and reports whether it is true.
func (c *Reader) boolean() bool { return string(c.raw()) == "true" }
