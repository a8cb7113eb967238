package document

import (
	"bytes"
	"strings"

	"tutti/internal/base/jsontext"
)

// Remove appends doc without the members at paths to dst; all other bytes are unchanged. A path is dotted, applies to all elements
// of arrays, and matches member names with dots as a mapping does. doc must be valid JSON.
func Remove(dst, doc []byte, paths []string) []byte {
	r := remover{scan: scanner{doc: doc}, dst: dst}
	r.value(pathTree(paths))
	return append(r.dst, doc[r.copied:]...)
}

// pathNode is a node of the tree of paths to remove; whole is set when the whole member is removed.
type pathNode struct {
	whole    bool
	children map[string]*pathNode
}

func pathTree(paths []string) *pathNode {
	root := &pathNode{}
	for _, path := range paths {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			next := at.children[name]
			if next == nil {
				next = &pathNode{}
				if at.children == nil {
					at.children = map[string]*pathNode{}
				}
				at.children[name] = next
			}
			at = next
		}
		at.whole = true
	}
	return root
}

// find returns the node of a member's name, which may contain dots.
func (c *pathNode) find(name []byte) *pathNode {
	for c != nil && !c.whole {
		first, rest, dotted := bytes.Cut(name, []byte{'.'})
		c = c.children[string(first)]
		if !dotted {
			break
		}
		name = rest
	}
	return c
}

// remover copies a document without the removed members; copied is its position in doc.
type remover struct {
	scan   scanner
	dst    []byte
	copied int
}

func (r *remover) value(c *pathNode) {
	switch {
	case c == nil:
		r.scan.skip()
	case r.scan.peek() == '{':
		r.object(c)
	case r.scan.peek() == '[':
		r.scan.array(func() bool {
			r.value(c)
			return true
		})
	default:
		r.scan.skip()
	}
}

// object removes members with the preceding comma or, when no member was kept before, with the following comma and white space.
func (r *remover) object(c *pathNode) {
	s := &r.scan
	s.pos++
	kept, pending, end := false, -1, s.pos
	for first := true; s.problem == ""; first = false {
		if more, _ := s.next(first, '}'); !more {
			break
		}
		s.peek()
		start := s.pos
		if pending >= 0 {
			r.drop(pending, start)
			pending = -1
		}
		name, escaped, _ := s.str()
		if escaped {
			name = jsontext.AppendUnescaped(nil, name)
		}
		s.colon()
		below := c.find(name)
		if below == nil || !below.whole {
			r.value(below)
			kept = true
		} else if s.skip(); kept {
			r.drop(end, s.pos)
		} else {
			pending = start
		}
		end = s.pos
	}
	if pending >= 0 {
		r.drop(pending, end)
	}
	s.pos++
}

func (r *remover) drop(from, to int) {
	r.dst = append(r.dst, r.scan.doc[r.copied:from]...)
	r.copied = to
}
