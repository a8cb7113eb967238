package document

import "tutti/internal/index/mapping"

// NestedCounter is a Sink that counts the objects in nested fields, as engines do for their limit.
type NestedCounter struct{ Objects int }

// Enter counts an object of a nested field.
func (c *NestedCounter) Enter(f *mapping.Field) {
	if f.Type == mapping.Nested {
		c.Objects++
	}
}

// Leave does nothing.
func (c *NestedCounter) Leave(*mapping.Field) {}

// Value does nothing.
func (c *NestedCounter) Value(*mapping.Field, Kind, []byte) {}
