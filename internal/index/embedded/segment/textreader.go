package segment

// TextReader reads the texts of a column. Ascending reads continue from the ordinal before, whereas Column.Text starts at the
// block's beginning each time. It is not safe for concurrent use.
type TextReader struct {
	from cursor
	// first is the ordinal in the cursor's dictionary that ordinals count from, prefix the number of bytes to cut off each text.
	first, prefix int
}

// Texts returns a reader of a column of texts.
func (c *Column) Texts() *TextReader {
	r := &TextReader{from: cursor{texts: c.texts}}
	if part, ok := c.texts.(*textRange); ok {
		r.from.texts, r.first, r.prefix = part.base, int(part.from), len(part.prefix)
	}
	return r
}

// At returns the value of an ordinal. The bytes belong to the segment or the reader and are valid until the next call.
func (r *TextReader) At(ordinal uint32) []byte {
	text, _ := r.from.read(r.first + int(ordinal))
	return text[r.prefix:]
}
