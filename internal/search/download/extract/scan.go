package extract

import "tutti/internal/jsontext"

// Span is the position of a value in a document.
type Span = jsontext.Span

// AppendCompact appends a value without white space between tokens, so that it has no line breaks. A truncated value is null.
func AppendCompact(dst, raw []byte) []byte {
	out, closed := jsontext.AppendCompact(dst, raw)
	if !closed || len(out) == len(dst) {
		return append(dst, "null"...)
	}
	return out
}
