package mapping

import (
	"bytes"
	"strconv"
)

func depthLimit(f *Field) int {
	if raw, ok := f.Params["depth_limit"]; ok {
		if n, err := strconv.Atoi(string(raw)); err == nil {
			return n
		}
	}
	return flattenedDepth
}

const (
	// unlimited is the number of levels of a skip that is not below a flattened field.
	unlimited = -1
	// flattenedDepth is Elasticsearch's default of depth_limit.
	flattenedDepth = 20
)

// skip reads one value of any kind and reports whether it contains a scalar other than null. levels is the number of objects that
// may still be nested in a flattened field, or unlimited.
func (c *Checker) skip(levels int) (valued, ok bool) {
	switch b := c.scan.peek(); b {
	case '{':
		if levels == 0 {
			return false, c.reject(TypeParsing, "exceeds the maximum depth limit of a flattened field")
		}
		return c.skipObject(levels)
	case '[':
		return c.skipArray(levels)
	case '"':
		_, _, ok = c.scan.str()
		return true, ok
	case 't':
		return true, c.scan.word("true")
	case 'f':
		return true, c.scan.word("false")
	case 'n':
		return false, c.scan.word("null")
	default:
		_, _, ok = c.scan.number()
		return true, ok
	}
}

func (c *Checker) skipObject(levels int) (valued, ok bool) {
	base, below := len(c.names), levels
	if levels != unlimited {
		below--
	}
	if !c.scan.enter() {
		return false, false
	}
	for first := true; ; first = false {
		more, ok := c.scan.next(first, '}')
		if !ok {
			return false, false
		}
		if !more {
			return valued, c.scan.leave() && c.closeNames(base)
		}
		name, ok := c.name(base)
		if !ok {
			return false, false
		}
		if levels != unlimited && bytes.IndexByte(name, 0) >= 0 {
			return false, c.reject(TypeParsing, "keys of a flattened field must not contain a null byte")
		}
		typed := isInfo(name) && c.scan.peek() == '{'
		value, ok := c.skip(below)
		if !ok {
			return false, false
		}
		valued = valued || value || typed
	}
}

func (c *Checker) skipArray(levels int) (valued, ok bool) {
	if !c.scan.enter() {
		return false, false
	}
	for first := true; ; first = false {
		more, ok := c.scan.next(first, ']')
		if !ok {
			return false, false
		}
		if !more {
			return valued, c.scan.leave()
		}
		value, ok := c.skip(levels)
		if !ok {
			return false, false
		}
		valued = valued || value
	}
}
