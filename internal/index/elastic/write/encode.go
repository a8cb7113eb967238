package write

import (
	"bytes"
	"strconv"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// Encode appends w as lines of a bulk body to dst. It returns the result and the document's offsets in it, which are equal for a
// deletion. It allocates only to grow dst.
func (*Writer) Encode(dst []byte, w core.Write) (out []byte, docStart, docEnd int) {
	if w.Op == core.OpDelete {
		dst = append(dst, `{"delete":{"_id":`...)
	} else {
		dst = append(dst, `{"index":{"_id":`...)
	}
	dst = jsontext.AppendRawString(dst, w.ID)
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
	if !w.Plain {
		replaceNewlines(dst[docStart:docEnd])
	}
	return append(dst, '\n'), docStart, docEnd
}

// replaceNewlines replaces line feeds by spaces. In JSON they occur only between tokens, but they end a line of a bulk body:
// without this a document could inject actions.
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
