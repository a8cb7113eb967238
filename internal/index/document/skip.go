package document

import (
	"bytes"
	"strconv"
	"unicode/utf16"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

func depthLimit(f *mapping.Field) int {
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
			return false, c.reject(core.TypeParsing, "exceeds the maximum depth limit of a flattened field")
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
		kind, raw, ok := c.scan.scalar(b)
		if ok && levels != unlimited && (c.AllTerms || len(c.keyed)+len(raw) > MaxTermBytes) && !c.fits(kind, raw) {
			return false, false
		}
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
			return c.reject(core.TypeParsing, "keys of a flattened field must not contain a null byte")
		}
		typed := isInfo(name) && c.scan.peek() == '{'
		naming := c.naming
		if naming && !c.enterName(name) {
			return false
		}
		c.naming = naming && !isInfo(name) // info is a free-form object
		outer := len(c.keyed)
		if levels != unlimited {
			c.keyed = append(append(c.keyed, name...), '.')
		}
		value, ok := c.skip(below)
		c.keyed, c.naming = c.keyed[:outer], naming
		c.path = c.path[:len(c.path)-btoi(ok && naming)]
		valued = valued || value || typed
		return ok
	})
	return valued, ok && c.closeNames(base)
}

// fits rejects a value of a flattened field that makes, with its path, a term that is too long for the engine. Longer texts than
// ignore_above make none.
func (c *Checker) fits(kind Kind, raw []byte) bool {
	object := 0 // the bytes of the object's name before the path
	if c.AllTerms {
		for _, name := range c.path {
			object += len(name) + 1
		}
		if object+len(c.keyed)+len(raw) <= MaxTermBytes {
			return true
		}
	}
	text := raw
	if kind == KindString && bytes.IndexByte(raw, '\\') >= 0 {
		text = jsontext.AppendUnescaped(nil, raw)
	}
	units := 0
	for _, r := range string(text) {
		units += utf16.RuneLen(r)
	}
	above, err := strconv.Atoi(string(c.flattened.Params["ignore_above"]))
	if err == nil && units > above && !c.AllTerms || kind == KindNull {
		return true
	}
	// The path ends with a dot, as long as the byte between path and value in the term.
	if object+len(c.keyed)+len(text) <= MaxTermBytes {
		return true
	}
	return c.reject(core.TypeIllegalArgument, longKeyReason+string(bytes.Join(c.path, []byte(".")))+
		"] contains one immense field whose keyed encoding is longer than the allowed max length of 32766 bytes")
}
