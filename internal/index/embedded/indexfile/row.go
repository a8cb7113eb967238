package indexfile

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

// LargeDocument is the size in bytes from which a document is read by itself: its buffer is not kept for others.
const LargeDocument = 256 << 10

// maxSource is the decoded size in bytes above which a source is considered corrupt: no document is that large.
const maxSource = 256 << 20

// AppendRow appends the row of a document: codec, version, length of the id, id, source.
func AppendRow(dst []byte, id string, version core.Version, doc []byte) []byte {
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

// RowsCapacity returns the capacity for the rows of a batch: about their compressed size, and for a single document, which may be
// large, all that compressing it needs.
func RowsCapacity(b core.Batch) int {
	size := len(b.Payload())
	if len(b.Items) == 1 {
		return maxRowHead + len(b.Items[0].ID) + max(size, s2.MaxEncodedLen(size))
	}
	return size*3/4 + 64*len(b.Items)
}

// Row is the value of a row number: a document with its id. It is valid until the read transaction ends.
type Row []byte

// split returns the id and the encoded source, without copying.
func (r Row) split() (id, body []byte, err error) {
	if len(r) < 10 {
		return nil, nil, errCorrupt("row")
	}
	n, size := binary.Uvarint(r[9:])
	if size <= 0 || n > uint64(len(r)-9-size) {
		return nil, nil, errCorrupt("row")
	}
	body = r[9+size:]
	return body[:n], body[n:], nil
}

// Size returns the size of the document in bytes.
func (r Row) Size() (int, error) {
	_, body, err := r.split()
	if err != nil || r[0] != codecS2 {
		return len(body), err
	}
	n, err := s2.DecodedLen(body)
	if err != nil || n > maxSource {
		return 0, errCorrupt("source")
	}
	return n, nil
}

// AppendDocument appends the document to dst.
func (r Row) AppendDocument(dst []byte) ([]byte, error) {
	_, body, err := r.split()
	if err != nil {
		return dst, err
	}
	switch r[0] {
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
		return dst, core.NewError(core.CodeUnsupported, fmt.Sprintf("the index contains a source of unknown codec %d", r[0]))
	}
}

func errCorrupt(what string) error {
	return core.NewError(core.CodeInternal, "the index contains a corrupt "+what)
}
