package segment

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// maxTokenChars is the length of the longest term; longer ones are split, as by Elasticsearch's standard analyzer.
const maxTokenChars = 255

// analyze calls each with the terms of a text: its runs of letters, digits and their combining marks, in lower case. The result is
// that of Elasticsearch's standard analyzer, except for scripts that are written without spaces.
func analyze(text []byte, each func(term []byte)) {
	start, chars := -1, 0
	flush := func(end int) {
		if start >= 0 {
			each(bytes.ToLower(text[start:end]))
		}
		start, chars = -1, 0
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && (start < 0 || !unicode.IsMark(r)):
			flush(i)
		case chars == maxTokenChars:
			flush(i)
			fallthrough
		default:
			if start < 0 {
				start = i
			}
			chars++
		}
		i += size
	}
	flush(len(text))
}
