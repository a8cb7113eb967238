package segment

import (
	"bytes"
	"hash/maphash"
	"slices"

	"tutti/internal/index/mapping"
)

// growingColumn is the values of a field while documents come: a row and a number for each. What a number stands for is only
// put in order in the end.
type growingColumn struct {
	rule  rule
	space *growingSpace
	seed  maphash.Seed
	rows  []uint32
	// numbers are those of texts or, for keys, of the entries of keys.
	numbers []uint32
	texts   interner
	keys    []uint64
	// seen are the texts of values whose canonical text or key is another, known the number of each; none for no value.
	seen  interner
	known []uint32
	// keyed is the column of a flattened field's keys.
	keyed *growingColumn
	buf   []byte
}

// none is the number of what is no value.
const none = ^uint32(0)

// add takes one value as a Walker returns it, unquoted.
func (c *growingColumn) add(kind mapping.Kind, text []byte) {
	switch {
	case c.rule.form == formFlattened:
		if kind == mapping.KindObject {
			mapping.Leaves(text, c.addLeaf)
		}
		return
	case kind == mapping.KindObject:
		return
	case kind == mapping.KindNull, len(text) == 0 && c.rule.emptyNull():
		if c.rule.null == nil {
			return
		}
		text = c.rule.null
	case kind != mapping.KindString && c.rule.strings:
		return
	}
	switch c.rule.form {
	case formTerms:
		analyze(text, c.addText)
	case formText:
		if c.rule.takes(text) {
			if c.rule.lower {
				c.addKnown(text)
			} else {
				c.addText(text)
			}
		}
	default:
		c.addKnown(text)
	}
}

// addText adds a text as it is.
func (c *growingColumn) addText(text []byte) {
	number, _ := c.texts.intern(c.seed, text)
	c.push(number)
}

// addKnown adds what a text stands for, which is worked out once for each text.
func (c *growingColumn) addKnown(text []byte) {
	at, fresh := c.seen.intern(c.seed, text)
	if fresh {
		c.known = append(c.known, c.number(text))
	}
	if number := c.known[at]; number != none {
		c.push(number)
	}
}

func (c *growingColumn) push(number uint32) {
	c.rows = append(c.rows, c.space.current)
	c.numbers = append(c.numbers, number)
}

// number returns the number of what a text stands for.
func (c *growingColumn) number(text []byte) uint32 {
	if c.rule.form == formKey {
		key, ok := c.rule.key(text)
		if !ok {
			return none
		}
		c.keys = append(c.keys, key)
		return uint32(len(c.keys) - 1)
	}
	canonical, ok := c.rule.canonical(text)
	if !ok {
		return none
	}
	number, _ := c.texts.intern(c.seed, canonical)
	return number
}

// addLeaf adds a value below a flattened field to its column and to that of its keys.
func (c *growingColumn) addLeaf(path []byte, kind mapping.Kind, raw []byte) {
	if kind == mapping.KindNull {
		if raw = c.rule.null; raw == nil {
			return
		}
	} else if bytes.IndexByte(raw, '\\') >= 0 {
		raw = mapping.Unquote(nil, raw)
	}
	if bytes.IndexByte(path, 0) >= 0 || !c.rule.takes(raw) || len(path)+1+len(raw) > maxTermBytes {
		return
	}
	c.addText(raw)
	if c.keyed == nil {
		c.keyed = &growingColumn{rule: rule{form: formFlattened, field: c.rule.field}, space: c.space, seed: c.seed}
	}
	c.buf = append(append(append(c.buf[:0], path...), 0), raw...)
	c.keyed.addText(c.buf)
}

// column returns what has come; nil when that is nothing. The growing column cannot be used any more.
func (c *growingColumn) column(rows int) *Column {
	if len(c.rows) == 0 {
		return nil
	}
	out := &Column{field: c.rule.field, space: c.space.path, rows: rows}
	var ordinals []uint32
	if c.rule.form == formKey {
		out.keys, ordinals = sortedKeys(c.keys)
	} else {
		out.texts, ordinals = c.texts.sorted()
	}
	for i, number := range c.numbers {
		c.numbers[i] = ordinals[number]
	}
	out.fill(c.rows, c.numbers)
	out.invert()
	if c.rule.form == formFlattened {
		out.forget()
	}
	return out
}

// sortedKeys returns the distinct keys in order, and the ordinal of each.
func sortedKeys(keys []uint64) (distinct []uint64, ordinals []uint32) {
	type entry struct {
		key    uint64
		number uint32
	}
	entries := make([]entry, len(keys))
	for i, key := range keys {
		entries[i] = entry{key, uint32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		default:
			return 0
		}
	})
	distinct, ordinals = make([]uint64, 0, len(keys)), make([]uint32, len(keys))
	for _, e := range entries {
		if n := len(distinct); n == 0 || distinct[n-1] != e.key {
			distinct = append(distinct, e.key)
		}
		ordinals[e.number] = uint32(len(distinct) - 1)
	}
	return slices.Clip(distinct), ordinals
}
