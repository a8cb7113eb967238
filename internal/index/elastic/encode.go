package elastic

import (
	"bytes"
	"strconv"

	"tutti/internal/core"
)

const hexDigits = "0123456789abcdef"

// Encode appends w as lines of a bulk body to dst and returns it with the bounds of the document in it, which are equal for a
// deletion. It allocates only to grow dst.
func (x *Index) Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int) {
	if w.Op == core.OpDelete {
		dst = append(dst, `{"delete":{"_id":`...)
	} else {
		dst = append(dst, `{"index":{"_id":`...)
	}
	dst = appendString(dst, w.ID)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(w.Version), 10)
	if w.Strict {
		dst = append(dst, `,"version_type":"external"}}`+"\n"...)
	} else {
		dst = append(dst, `,"version_type":"external_gte"}}`+"\n"...)
	}
	docStart = len(dst)
	if w.Op == core.OpDelete {
		return dst, docStart, docStart
	}
	dst = append(dst, w.Document...)
	docEnd = len(dst)
	replaceNewlines(dst[docStart:docEnd])
	return append(dst, '\n'), docStart, docEnd
}

// replaceNewlines replaces line feeds by spaces. In JSON they occur only between tokens, but they end a line of a bulk body:
// without this a document could contain actions.
func replaceNewlines(doc []byte) {
	for {
		at := bytes.IndexByte(doc, '\n')
		if at < 0 {
			return
		}
		doc[at] = ' '
		doc = doc[at+1:]
	}
}

// appendString appends s as a JSON string. Invalid UTF-8 is copied unchanged, so that the cluster rejects the id instead of
// storing the document under another one.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		if c >= ' ' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
