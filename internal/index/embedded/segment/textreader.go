package segment

// TextReader reads the texts of a column. Where ordinals grow from one to the next it goes on from there, while Column.Text begins
// anew for each. It is for one goroutine at a time.
type TextReader struct {
	from cursor
	// first is what ordinals count from in the cursor's dictionary, prefix how many bytes of its texts are left out.
	first, prefix int
}

// Texts returns a reader of a column of texts.
func (c *Column) Texts() *TextReader {
	r := &TextReader{from: cursor{texts: c.texts}}
	if part, ok := c.texts.(*partTexts); ok {
		r.from.texts, r.first, r.prefix = part.of, int(part.from), len(part.prefix)
	}
	return r
}

// At returns the value of an ordinal; the bytes are those of the segment or of the reader, and valid until the next call.
func (r *TextReader) At(ordinal uint32) []byte {
	text, _ := r.from.read(r.first + int(ordinal))
	return text[r.prefix:]
}
