package embedded

import (
	"bytes"
	"strings"

	"tutti/internal/base/jsontext"
)

// projection copies the parts of documents at some paths. A nil projection copies everything.
type projection struct {
	// members are the projections of the members of an object; the others are omitted.
	members map[string]*projection
}

// newProjection returns the projection on dotted paths of containers or values, nil paths for everything.
func newProjection(paths []string) *projection {
	if paths == nil {
		return nil
	}
	root := &projection{members: map[string]*projection{}}
	for _, path := range paths {
		root.add(path)
	}
	return root
}

func (p *projection) add(path string) {
	name, rest, below := strings.Cut(path, ".")
	child, known := p.members[name]
	switch {
	case !below:
		p.members[name] = nil
	case !known:
		child = newProjection([]string{})
		p.members[name] = child
		child.add(rest)
	case child != nil: // otherwise a shorter path has all of it
		child.add(rest)
	}
}

// append appends the projection of a value to dst, within the capacity of dst; ok is false when that is too small. A member whose name has
// a dot or an escape is copied: it may be on one of the paths. So is an array within an array.
func (p *projection) append(dst, value []byte) (out []byte, ok bool) {
	switch {
	case p == nil || len(value) == 0:
		return appendWithin(dst, value)
	case value[0] == '{':
		return p.appendObject(dst, value)
	case value[0] == '[':
		return p.appendArray(dst, value)
	default:
		return appendWithin(dst, value)
	}
}

func (p *projection) appendObject(dst, object []byte) (out []byte, ok bool) {
	dst, ok = appendWithin(dst, []byte{'{'})
	start := len(dst)
	jsontext.Members(object, 0, func(name []byte, escaped bool, v jsontext.Span) bool {
		child, wanted := p.members[string(name)]
		if !wanted && !escaped && bytes.IndexByte(name, '.') < 0 {
			return true
		}
		if ok && len(dst) > start {
			dst, ok = appendWithin(dst, []byte{','})
		}
		if ok = ok && len(dst)+len(name)+3 <= cap(dst); ok {
			dst = append(append(append(dst, '"'), name...), '"', ':')
			dst, ok = child.append(dst, v.Of(object))
		}
		return ok
	})
	if !ok {
		return dst, false
	}
	return appendWithin(dst, []byte{'}'})
}

func (p *projection) appendArray(dst, array []byte) (out []byte, ok bool) {
	dst, ok = appendWithin(dst, []byte{'['})
	start := len(dst)
	for i := jsontext.Space(array, 1); ok && i < len(array) && array[i] != ']'; {
		end := jsontext.Value(array, i)
		if end == i {
			break
		}
		if len(dst) > start {
			dst, ok = appendWithin(dst, []byte{','})
		}
		item := array[i:end]
		switch {
		case !ok:
		case item[0] == '{':
			dst, ok = p.appendObject(dst, item)
		default:
			dst, ok = appendWithin(dst, item)
		}
		if i = jsontext.Space(array, end); i < len(array) && array[i] == ',' {
			i = jsontext.Space(array, i+1)
		}
	}
	if !ok {
		return dst, false
	}
	return appendWithin(dst, []byte{']'})
}

// appendWithin appends b to dst if its capacity is large enough.
func appendWithin(dst, b []byte) (out []byte, ok bool) {
	if len(b) > cap(dst)-len(dst) {
		return dst, false
	}
	return append(dst, b...), true
}
