package segment

import (
	"sync"
)

// A flattened field has one more column for all of its keys, whose texts are a key, a zero byte and a value: a column for each
// key, however rare, would cost a number for each row. What is asked of one key is made when it is asked. Both columns are bare.

// keyedName is what the column of a flattened field's keys is called. No field can have such a name.
func keyedName(path string) string { return path + "\x00" }

// maxKeyed is how many columns of single keys a segment keeps.
const maxKeyed = 32

// keyed keeps the columns of single keys that were asked for.
type keyed struct {
	mu      sync.Mutex
	columns map[string]*Column
}

// column returns the values at key of all, the column of a flattened field's keys; nil when there are none. path is the field's
// with the key.
func (k *keyed) column(all *Column, path, key string) *Column {
	prefix := key + "\x00"
	from, _ := all.texts.find(prefix)
	to, _ := all.texts.find(key + "\x01")
	if from == to {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.columns[path]; c != nil {
		return c
	}
	if k.columns == nil || len(k.columns) >= maxKeyed {
		k.columns = map[string]*Column{}
	}
	c := all.part(&partTexts{of: all.texts, from: from, to: to, prefix: prefix})
	c.field.Path = path
	k.columns[path] = c
	return c
}

// part returns the column of a run of c's texts.
func (c *Column) part(texts *partTexts) *Column {
	out := &Column{field: c.field, space: c.space, rows: c.rows, texts: texts}
	out.byRow = c.valuesByRow(texts.from, texts.to)
	out.invert()
	return out
}

// eachRow calls each with the rows that have the value of an ordinal.
func (c *Column) eachRow(ordinal uint32, each func(row uint32)) {
	if c.postings == nil {
		for _, row := range c.rowsOf(ordinal, ordinal+1) {
			each(row)
		}
		return
	}
	rows := c.postings[ordinal].Iterator()
	for rows.HasNext() {
		each(rows.Next())
	}
}
