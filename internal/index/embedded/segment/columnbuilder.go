package segment

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"tutti/internal/base/jsontext"
	"tutti/internal/index/document"
	"tutti/internal/index/embedded/segment/dictionary"
	"tutti/internal/index/embedded/segment/fieldvalue"
)

// columnBuilder collects the values of a field while documents are added: pairs of a row and a value id. Values are sorted only
// when the column is finished.
type columnBuilder struct {
	rule  fieldvalue.Rule
	space *rowSpaceBuilder
	seed  maphash.Seed
	rows  []uint32
	// valueIDs are ids in texts or indexes of keys.
	valueIDs []uint32
	texts    dictionary.Interner
	keys     []uint64
	// seen interns the raw texts of values that are converted to a canonical text or a key. converted holds the value id of each
	// of these texts, none for an invalid value.
	seen      dictionary.Interner
	converted []uint32
	// flattenedKeys collects the column of a flattened field's keys.
	flattenedKeys *columnBuilder
	buf           []byte
}

// none marks an invalid value or a deleted row.
const none = ^uint32(0)

// add adds a value as a Walker returns it, unquoted.
func (c *columnBuilder) add(kind document.Kind, text []byte) {
	switch {
	case c.rule.Form == fieldvalue.FormFlattened:
		if kind == document.KindObject {
			document.Leaves(text, c.addLeaf)
		}
		return
	case c.rule.Form == fieldvalue.FormRange:
		if text, err := c.rule.Range(kind, text); err == nil && kind != document.KindNull {
			c.addText(text)
		}
		return
	case kind == document.KindObject && c.rule.Form != fieldvalue.FormPresent:
		return
	case kind == document.KindNull, len(text) == 0 && c.rule.EmptyIsNull():
		if c.rule.NullValue == nil {
			return
		}
		text = c.rule.NullValue
	case kind != document.KindString && c.rule.StringsOnly:
		return
	}
	switch c.rule.Form {
	case fieldvalue.FormTerms:
		fieldvalue.Analyze(text, c.addText)
	case fieldvalue.FormPresent:
		c.addText(nil)
	case fieldvalue.FormText:
		if c.rule.Fits(text) {
			if c.rule.Lower {
				c.addConverted(text)
			} else {
				c.addText(text)
			}
		}
	default:
		c.addConverted(text)
	}
}

// addText adds a text unconverted.
func (c *columnBuilder) addText(text []byte) {
	number, _ := c.texts.Intern(c.seed, text)
	c.push(number)
}

// addConverted adds the converted value of a text. Each distinct text is converted once.
func (c *columnBuilder) addConverted(text []byte) {
	at, fresh := c.seen.Intern(c.seed, text)
	if fresh {
		c.converted = append(c.converted, c.convert(text))
	}
	if number := c.converted[at]; number != none {
		c.push(number)
	}
}

func (c *columnBuilder) push(number uint32) {
	c.rows = append(c.rows, c.space.current)
	c.valueIDs = append(c.valueIDs, number)
}

// convert returns the value id of a text's key or canonical text, none when it is invalid.
func (c *columnBuilder) convert(text []byte) uint32 {
	if c.rule.Form == fieldvalue.FormKey {
		key, ok := c.rule.Key(text)
		if !ok {
			return none
		}
		c.keys = append(c.keys, key)
		return uint32(len(c.keys) - 1)
	}
	canonical, ok := c.rule.Canonical(text)
	if !ok {
		return none
	}
	number, _ := c.texts.Intern(c.seed, canonical)
	return number
}

// addLeaf adds a value below a flattened field to the field's column and to that of its keys.
func (c *columnBuilder) addLeaf(path []byte, kind document.Kind, raw []byte) {
	if kind == document.KindNull {
		if raw = c.rule.NullValue; raw == nil {
			return
		}
	} else if bytes.IndexByte(raw, '\\') >= 0 {
		raw = jsontext.AppendUnescaped(nil, raw)
	}
	if bytes.IndexByte(path, 0) >= 0 || !c.rule.Fits(raw) || len(path)+1+len(raw) > fieldvalue.MaxTermBytes {
		return
	}
	c.addText(raw)
	if c.flattenedKeys == nil {
		c.flattenedKeys = &columnBuilder{rule: fieldvalue.Rule{Form: fieldvalue.FormFlattened, Field: c.rule.Field}, space: c.space, seed: c.seed}
	}
	c.buf = append(append(append(c.buf[:0], path...), 0), raw...)
	c.flattenedKeys.addText(c.buf)
}

// column returns the finished column, nil when there are no values. The columnBuilder must not be used afterwards.
func (c *columnBuilder) column(rows int) *Column {
	if len(c.rows) == 0 {
		return nil
	}
	out := &Column{field: c.rule.Field, space: c.space.path}
	var ordinals []uint32
	if c.rule.Form == fieldvalue.FormKey {
		out.keys, ordinals = sortedKeys(c.keys)
	} else {
		out.texts, ordinals = c.texts.Sorted()
	}
	for i, number := range c.valueIDs {
		c.valueIDs[i] = ordinals[number]
	}
	out.byRow = newByRow(c.rows, c.valueIDs, rows, out.Numeric())
	out.byValue = out.invert(rows, int(out.Size()))
	if c.rule.Form == fieldvalue.FormFlattened {
		out.byRow = byRow{}
	}
	return out
}

// sortedKeys returns the sorted distinct keys, and the ordinal of each of keys.
func sortedKeys(keys []uint64) (distinct []uint64, ordinals []uint32) {
	type entry struct {
		key    uint64
		number uint32
	}
	entries := make([]entry, len(keys))
	for i, key := range keys {
		entries[i] = entry{key, uint32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	distinct, ordinals = make([]uint64, 0, len(keys)), make([]uint32, len(keys))
	for _, e := range entries {
		if n := len(distinct); n == 0 || distinct[n-1] != e.key {
			distinct = append(distinct, e.key)
		}
		ordinals[e.number] = uint32(len(distinct) - 1)
	}
	return slices.Clip(distinct), ordinals
}
