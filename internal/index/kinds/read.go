package kinds

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"tutti/internal/index/mapping"
	"tutti/internal/jsontext"
)

// The functions of this file read documents that were parsed before: beyond the names and the kinds, they do not check the syntax. Each returns
// the index after what it read, or end.

// end is returned where a document ends early: it is not JSON, is nested too deep, or the count has overflown.
const end = -1

// maxDepth is the maximum depth of objects and arrays in a document, as in a mapping's.
const maxDepth = 1000

// ignored stands for the members below a value whose members are not counted.
var ignored = &node{typed: true}

// members reads the object at i, whose path is that of n.
func (c *Counter) members(doc []byte, i int, n *node) int {
	if c.depth++; c.depth > maxDepth {
		return end
	}
	for expected := &n.first; ; {
		i = space(doc, i+1)
		m, after := *expected, 0
		if m != nil {
			if after = named(doc, i, m.name); after == 0 && m.next != nil { // it may be missing
				if after = named(doc, i, m.next.name); after > 0 {
					m = m.next
				}
			}
		}
		plain := after > 0
		if !plain {
			if i < len(doc) && doc[i] == '}' {
				break
			}
			if m, plain, after = c.member(doc, i, n); after < 0 {
				return end
			}
			if plain {
				*expected = m
			}
		}
		if plain {
			expected = &m.next
		}
		if i = c.value(doc, after, m, false); i < 0 {
			return end
		}
		if i = space(doc, i); i >= len(doc) {
			return end
		}
		if doc[i] == '}' {
			break
		}
		if doc[i] != ',' {
			return end
		}
	}
	c.depth--
	return i + 1
}

// named returns the index after the colon if the member at i has a name without escapes, and is not followed by white space; otherwise 0.
func named(doc []byte, i int, name string) int {
	colon := i + len(name) + 2
	if colon < len(doc) && doc[i] == '"' && doc[colon-1] == '"' && doc[colon] == ':' && string(doc[i+1:colon-1]) == name {
		return colon + 1
	}
	return 0
}

// member returns the node of the member of n at i, and the index after its colon. plain reports whether its name is written as it is: it has
// neither escapes nor dots, which mean objects.
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
	if escaped {
		name = jsontext.AppendUnescaped(nil, name)
	}
	first, rest, dotted := bytes.Cut(name, []byte{'.'})
	plain = !escaped && !dotted
	for m = c.child(n, first); m != nil && dotted; m = c.child(m, first) {
		if m.typed {
			return ignored, false, after + 1
		}
		if c.object(m, false); m.free {
			return ignored, false, after + 1
		}
		first, rest, dotted = bytes.Cut(rest, []byte{'.'})
	}
	if m == nil {
		return nil, false, end
	}
	return m, plain, after + 1
}

// value reads the value at i of n; element reports whether it is in an array.
func (c *Counter) value(doc []byte, i int, n *node, element bool) int {
	if i = space(doc, i); i >= len(doc) {
		return end
	}
	if doc[i] == '"' {
		after := textEnd(doc, i)
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
			c.count(n, 2, &n.counts.Booleans)
		}
	case 'n':
	default:
		if b-'0' > 9 && b != '-' {
			return end
		}
		if !n.known {
			c.count(n, 1, &n.counts.Numbers)
		}
	}
	return jsontext.Value(doc, i)
}

// elements reads the array at i.
func (c *Counter) elements(doc []byte, i int, n *node) int {
	if c.depth++; c.depth > maxDepth {
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
		c.count(n, 0, &n.counts.Objects)
		n.counts.Lists = n.counts.Lists || element
	}
}

// text counts a text.
func (c *Counter) text(n *node, raw []byte) {
	c.count(n, 3, &n.counts.Texts)
	if !n.counts.NoDate {
		dated, taken := mapping.DateText(raw)
		n.counts.Undated, n.counts.NoDate = n.counts.Undated || !dated, !taken
	}
}

// space returns the index of the first byte from i on that is not white space.
func space(doc []byte, i int) int {
	if i < len(doc) && doc[i] > ' ' {
		return i
	}
	return jsontext.Space(doc, i)
}

// textEnd returns the index after the string whose opening quote is at i. It looks for quotes only: one that does not follow a backslash ends it.
func textEnd(doc []byte, i int) int {
	const ones, highs, quotes = 0x0101010101010101, 0x8080808080808080, 0x2222222222222222
	for at := i + 1; at+8 <= len(doc); at += 8 {
		x := binary.LittleEndian.Uint64(doc[at:]) ^ quotes
		found := (x - ones) &^ x & highs // the lowest is a true one
		if found == 0 {
			continue
		}
		if at += bits.TrailingZeros64(found) / 8; doc[at-1] != '\\' {
			return at + 1
		}
		break
	}
	after, _ := jsontext.String(doc, i)
	return after
}
