package segment

import (
	"sync"

	"tutti/internal/index/embedded/segment/dictionary"
)

// A flattened field has one more column for all its keys, whose texts are a key, a zero byte and a value: a column per key, however
// rare, would need a number for each row. The column of a single key is built on first use. Both columns of a flattened field are
// inverted-only.

// flattenedKeysName returns the name of the column of a flattened field's keys. No field can have this name.
func flattenedKeysName(path string) string { return path + "\x00" }

// maxKeyColumns is the number of single-key columns that a segment caches.
const maxKeyColumns = 32

// keyColumns caches the columns of single keys.
type keyColumns struct {
	mu      sync.Mutex
	columns map[string]*Column
}

// column returns the values of key in all, the column of a flattened field's keys; nil when there are none. path is the path of the
// field and the key.
func (k *keyColumns) column(all *Column, path, key string) *Column {
	prefix := key + "\x00"
	from, _ := all.texts.Find(prefix)
	to, _ := all.texts.Find(key + "\x01")
	if from == to {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.columns[path]; c != nil {
		return c
	}
	if k.columns == nil || len(k.columns) >= maxKeyColumns {
		k.columns = map[string]*Column{}
	}
	c := keyColumn(all, from, to, len(prefix))
	c.field.Path = path
	k.columns[path] = c
	return c
}

// keyColumn returns the column of the texts [from, to) of c without their common prefix.
func keyColumn(c *Column, from, to uint32, prefix int) *Column {
	out := &Column{field: c.field, space: c.space, byRow: c.rowsToValues(from, to)}
	out.byValue = out.invert(c.rows, int(to-from))
	texts, all := dictionary.NewBuilder(int(to-from), nil), c.Texts()
	for ordinal := from; ordinal < to; ordinal++ {
		texts.Add(all.At(ordinal)[prefix:], nil)
	}
	out.texts = texts.Done()
	return out
}
