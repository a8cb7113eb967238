package mapping

import (
	"bytes"
	"strings"
)

// Remove appends doc without the members at paths to dst; all other bytes stay as they are. A path is dotted, goes
// through arrays, and matches a member whose name has dots as it does in a mapping. doc must be valid JSON.
func Remove(dst, doc []byte, paths []string) []byte {
	r := remover{scan: scanner{doc: doc}, dst: dst}
	r.value(plan(paths))
	return append(r.dst, doc[r.copied:]...)
}

// cut is a node of the paths to remove; a nil children map below a path means the whole member.
type cut struct {
	whole    bool
	children map[string]*cut
}

func plan(paths []string) *cut {
	root := &cut{}
	for _, path := range paths {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			next := at.children[name]
			if next == nil {
				next = &cut{}
				if at.children == nil {
					at.children = map[string]*cut{}
				}
				at.children[name] = next
			}
			at = next
		}
		at.whole = true
	}
	return root
}

// find follows a member's name, which may hold dots.
func (c *cut) find(name []byte) *cut {
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

// remover copies a document but for the members that are cut; copied is how far it has come.
type remover struct {
	scan   scanner
	dst    []byte
	copied int
}

func (r *remover) value(c *cut) {
	switch {
	case c == nil:
		r.scan.skip()
	case r.scan.peek() == '{':
		r.object(c)
	case r.scan.peek() == '[':
		r.scan.elements(func() { r.value(c) })
	default:
		r.scan.skip()
	}
}

// object takes a removed member away with the comma before it, or, where nothing was kept before it, with the comma
// and the space behind it.
func (r *remover) object(c *cut) {
	s := &r.scan
	s.pos++
	kept, pending, end := false, -1, s.pos
	for first := true; s.fault == ""; first = false {
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
			name = Unquote(nil, name)
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
