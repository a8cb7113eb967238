package kinds

import (
	"bytes"

	"tutti/internal/base/jsontext"
	"tutti/internal/index/document"
)

// The functions of this file read documents that were parsed before: beyond the names and the kinds, they do not check the syntax. Each returns
// the index after what it read, or end.

// end is returned where a document ends early: it is not JSON, is nested too deep, or the count has overflown.
const end = -1

// ignored stands for the members below a value whose members are not counted.
var ignored = &node{typed: true}

// members reads the object at i, whose path is that of n.
func (c *Counter) members(doc []byte, i int, n *node) int {
	if c.depth++; c.depth > document.MaxDepth {
		return end
	}
	for expected := &n.first; ; {
		i = space(doc, i+1)
		m, after := *expected, 0
		if m != nil {
			if after = m.named(doc, i); after == 0 && m.next != nil { // it may be missing
				m = m.next
				after = m.named(doc, i)
			}
		}
		switch {
		case after > 0:
			expected = &m.next
		case i < len(doc) && doc[i] == '}':
			c.depth--
			return i + 1
		default:
			plain := false
			if m, plain, after = c.member(doc, i, n); plain {
				*expected = m
				expected = &m.next
			}
		}
		if m == nil {
			return end
		}
		if m.typed && after < len(doc) && doc[after] == '"' { // most values
			i = jsontext.StringEnd(doc, after)
		} else if i = c.value(doc, after, m, false); i < 0 {
			return end
		}
		if i = space(doc, i); i < len(doc) && doc[i] == ',' {
			continue
		}
		if i >= len(doc) || doc[i] != '}' {
			return end
		}
		c.depth--
		return i + 1
	}
}

// named returns the index after the colon if the member at i has the name of n, without escapes and without white space after it; otherwise 0.
func (n *node) named(doc []byte, i int) int {
	after := i + len(n.written)
	if after <= len(doc) && string(doc[i:after]) == n.written {
		return after
	}
	return 0
}

// member returns the node of the member of n at i, nil at the end, and the index after its colon. plain reports whether its name has neither
// escapes nor dots, which mean objects: otherwise it is not written like that of the node.
func (c *Counter) member(doc []byte, i int, n *node) (m *node, plain bool, after int) {
	if i >= len(doc) || doc[i] != '"' {
		return nil, false, end
	}
	after, escaped := jsontext.String(doc, i)
	if after < i+2 || doc[after-1] != '"' {
		return nil, false, end
	}
	name := doc[i+1 : after-1]
	if after = space(doc, after); after >= len(doc) || doc[after] != ':' {
		return nil, false, end
	}
	after++
	if escaped {
		name = jsontext.AppendUnescaped(nil, name)
	}
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	plain = !escaped && !dotted
	for m = c.child(n, first); m != nil && dotted; m = c.child(m, first) {
		if !m.typed {
			c.object(m, false)
		}
		if m.typed || m.free {
			return ignored, false, after
		}
		first, rest, dotted = bytes.Cut(rest, []byte{'.'})
	}
	return m, plain && m != nil, after
}

// value reads the value at i of n; element reports whether it is in an array.
func (c *Counter) value(doc []byte, i int, n *node, element bool) int {
	if i = space(doc, i); i >= len(doc) {
		return end
	}
	if doc[i] == '"' {
		after := jsontext.StringEnd(doc, i)
		if !n.known && !n.typed && after > i+1 {
			c.text(n, doc[i+1:after-1])
		}
		return after
	}
	if n.typed {
		return jsontext.Value(doc, i)
	}
	switch b := doc[i]; b {
	case '{':
		if c.object(n, element); n.free {
			return jsontext.Container(doc, i)
		}
		return c.members(doc, i, n)
	case '[':
		return c.elements(doc, i, n)
	case 't', 'f':
		if !n.known {
			c.count(n, booleans)
		}
	case 'n':
	default:
		if b-'0' > 9 && b != '-' {
			return end
		}
		if !n.known {
			c.count(n, numbers)
		}
	}
	return jsontext.Value(doc, i)
}

// elements reads the array at i.
func (c *Counter) elements(doc []byte, i int, n *node) int {
	if c.depth++; c.depth > document.MaxDepth {
		return end
	}
	if i = space(doc, i+1); i < len(doc) && doc[i] == ']' {
		c.depth--
		return i + 1
	}
	for {
		if i = c.value(doc, i, n, true); i < 0 {
			return end
		}
		if i = space(doc, i); i >= len(doc) || doc[i] != ',' && doc[i] != ']' {
			return end
		}
		if i++; doc[i-1] == ']' {
			c.depth--
			return i
		}
	}
}

// object counts an object.
func (c *Counter) object(n *node, element bool) {
	if !n.known {
		c.count(n, objects)
		if element {
			c.count(n, elements)
		}
	}
}

// text counts a text.
func (c *Counter) text(n *node, raw []byte) {
	c.count(n, texts)
	if jsontext.IsDay(raw) {
		return
	}
	c.count(n, others)
	if n.counts.NoDate > 0 { // of the part that ends with Take
		return
	}
	dated, taken := document.DateText(raw)
	if !dated {
		n.counts.Undated = 1
	}
	if !taken {
		n.counts.NoDate = 1
	}
}

// space returns the index of the first byte from i on that is not white space.
func space(doc []byte, i int) int {
	if i < len(doc) && doc[i] > ' ' {
		return i
	}
	return jsontext.Space(doc, i)
}
