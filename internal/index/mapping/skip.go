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
		ok = c.scan.array(func() bool {
			value, ok := c.skip(levels)
			valued = valued || value
			return ok
		})
		return valued, ok
	default:
		kind, _, ok := c.scan.scalar(b)
		return kind != KindNull, ok
	}
}

func (c *Checker) skipObject(levels int) (valued, ok bool) {
	base, below := len(c.names), levels
	if levels != unlimited {
		below--
	}
	ok = c.scan.object(func(name []byte) bool {
		if !c.addName(base, name) {
			return false
		}
		if levels != unlimited && bytes.IndexByte(name, 0) >= 0 {
			return c.reject(TypeParsing, "keys of a flattened field must not contain a null byte")
		}
		typed := isInfo(name) && c.scan.peek() == '{'
		value, ok := c.skip(below)
		valued = valued || value || typed
		return ok
	})
	return valued, ok && c.closeNames(base)
}
