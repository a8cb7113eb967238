package embedded

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"tutti/internal/core"
)

// Codecs of a row's source.
const (
	codecPlain byte = 0
	codecS2    byte = 1
)

// minCompressBytes is the size from which a source is compressed.
const minCompressBytes = 256

// maxRowHead bounds the length of a row before the id: codec, version and the length of the id.
const maxRowHead = 1 + 8 + binary.MaxVarintLen64

// maxSource is the decoded size in bytes above which a source is considered corrupt: no document is that large.
const maxSource = 256 << 20

// appendRow appends the row of a document: codec, version, length of the id, id, source.
func appendRow(dst []byte, id string, version core.Version, doc []byte) []byte {
	start := len(dst)
	dst = append(dst, codecPlain)
	dst = binary.BigEndian.AppendUint64(dst, uint64(version))
	dst = binary.AppendUvarint(dst, uint64(len(id)))
	dst = append(dst, id...)
	if len(doc) < minCompressBytes || s2.MaxEncodedLen(len(doc)) < 0 {
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

// splitRow returns the id and the encoded source of a row, without copying.
func splitRow(row []byte) (id, body []byte, err error) {
	if len(row) < 10 {
		return nil, nil, errCorrupt("row")
	}
	n, size := binary.Uvarint(row[9:])
	if size <= 0 || n > uint64(len(row)-9-size) {
		return nil, nil, errCorrupt("row")
	}
	body = row[9+size:]
	return body[:n], body[n:], nil
}

// source returns a copy of the document of a row.
func source(row []byte) ([]byte, error) { return appendSource(nil, row) }

// appendSource appends the document of a row to dst.
func appendSource(dst, row []byte) ([]byte, error) {
	_, body, err := splitRow(row)
	if err != nil {
		return dst, err
	}
	switch row[0] {
	case codecPlain:
		return append(dst, body...), nil
	case codecS2:
		n, err := s2.DecodedLen(body)
		if n > maxSource {
			return dst, errCorrupt("source")
		}
		if err == nil {
			dst = slices.Grow(dst, n)
			_, err = s2.Decode(dst[len(dst):len(dst)+n], body)
		}
		if err != nil {
			return dst, core.WrapError(core.CodeInternal, "the index contains a corrupt source", err)
		}
		return dst[:len(dst)+n], nil
	default:
		return dst, core.NewError(core.CodeUnsupported, fmt.Sprintf("the index contains a source of unknown codec %d", row[0]))
	}
}

func errCorrupt(what string) error {
	return core.NewError(core.CodeInternal, "the index contains a corrupt "+what)
}
