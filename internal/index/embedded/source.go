package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"

	"tutti/internal/core"
)

// Codecs of a row's source.
const (
	codecPlain byte = 0
	codecS2    byte = 1
)

// worthCompressing is from how many bytes on a source is compressed.
const worthCompressing = 256

// appendRow gives the row of a document: codec, version, length of the id, id, source.
func appendRow(dst []byte, id string, version core.Version, doc []byte) []byte {
	start := len(dst)
	dst = append(dst, codecPlain)
	dst = binary.BigEndian.AppendUint64(dst, uint64(version))
	dst = binary.AppendUvarint(dst, uint64(len(id)))
	dst = append(dst, id...)
	if len(doc) < worthCompressing || s2.MaxEncodedLen(len(doc)) < 0 {
		return append(dst, doc...)
	}
	head := len(dst)
	most := s2.MaxEncodedLen(len(doc))
	if cap(dst)-head < most {
		dst = append(make([]byte, 0, 2*cap(dst)+most), dst...)
	}
	packed := s2.Encode(dst[head:head+most], doc)
	if len(packed) >= len(doc) {
		return append(dst, doc...)
	}
	dst[start] = codecS2
	return dst[:head+len(packed)]
}

// source gives the document of a row; it is a copy.
func source(row []byte) ([]byte, error) {
	if len(row) < 10 {
		return nil, errCut("row")
	}
	codec := row[0]
	n, size := binary.Uvarint(row[9:])
	if size <= 0 || n > uint64(len(row)-9-size) {
		return nil, errCut("row")
	}
	body := row[9+size+int(n):]
	switch codec {
	case codecPlain:
		return append([]byte(nil), body...), nil
	case codecS2:
		doc, err := s2.Decode(nil, body)
		if err != nil {
			return nil, core.WrapError(core.CodeInternal, "the index holds a source that cannot be read", err)
		}
		return doc, nil
	default:
		return nil, core.NewError(core.CodeUnsupported, fmt.Sprintf("the index holds a source of codec %d", codec))
	}
}

func errCut(what string) error {
	return core.NewError(core.CodeInternal, "the index holds a "+what+" that cannot be read")
}
