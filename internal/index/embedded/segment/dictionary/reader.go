package dictionary

// Reader reads texts. Ascending reads continue from the ordinal before, whereas Texts.At starts at the block's beginning each time. It
// is not safe for concurrent use.
type Reader struct {
	texts  Texts
	at     int
	reader blockReader
	text   []byte
}

// NewReader returns a Reader before the first text.
func NewReader(texts Texts) *Reader { return &Reader{texts: texts} }

// At returns the value of an ordinal. The bytes belong to the segment or the reader and are valid until the next call.
func (c *Reader) At(ordinal uint32) []byte {
	text, _ := c.read(int(ordinal))
	return text
}

// Next returns the next text and, if known, its packed form; both are valid until the next call. False after the last.
func (c *Reader) Next() (text, packed []byte, ok bool) {
	if c.at >= c.texts.Size() {
		return nil, nil, false
	}
	text, packed = c.read(c.at)
	return text, packed, true
}

// Ordinal returns the ordinal of the text that was read last.
func (c *Reader) Ordinal() uint32 { return uint32(c.at - 1) }

// read returns the text of an ordinal and positions the reader after it. Reading ahead within a block continues from the current
// position.
func (c *Reader) read(ordinal int) (text, packed []byte) {
	from, ok := c.texts.(*packedTexts)
	if !ok {
		c.at = ordinal + 1
		c.text = c.texts.At(c.text, uint32(ordinal))
		return c.text, nil
	}
	block := ordinal / blockTexts
	if first := block * blockTexts; c.at <= first || c.at > ordinal {
		c.reader.open(from, block)
		c.at = first
	}
	for ; c.at <= ordinal; c.at++ {
		c.reader.next()
	}
	c.text = unpack(c.text[:0], c.reader.packed)
	return c.text, c.reader.packed
}
