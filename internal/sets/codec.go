package sets

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tutti/internal/core"
)

// errCorrupt is the cause of an error about members that were not packed by packing.
var errCorrupt = errors.New("the members are not as they were packed")

// minDecoderMemory is how large a set can be read in any case, in bytes: one may have been saved when larger ones were allowed.
const minDecoderMemory = 64 << 20

// codec makes one blob of members: their texts, each behind its length, compressed.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newCodec makes a packing of members that are maxBytes at most, without their lengths.
func newCodec(maxBytes, maxMembers int) (*codec, error) {
	const doing = "making ready to pack saved sets"
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	most := max(uint64(maxBytes)+uint64(maxMembers+1)*binary.MaxVarintLen64, minDecoderMemory)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(most))
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, doing, err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// pack returns the blob of members.
func (p *codec) pack(members []string) []byte {
	var raw []byte
	for _, m := range members {
		raw = binary.AppendUvarint(raw, uint64(len(m)))
		raw = append(raw, m...)
	}
	return p.encoder.EncodeAll(raw, nil)
}

// unpack returns the members of a blob, which are count.
func (p *codec) unpack(blob []byte, count int) ([]string, error) {
	raw, err := p.decoder.DecodeAll(blob, nil)
	if err != nil {
		return nil, corruptError(err)
	}
	// All members share the bytes of one text. Each takes a byte at least.
	text := string(raw)
	members := make([]string, 0, min(max(count, 0), len(raw)))
	for at := 0; at < len(raw); {
		size, n := binary.Uvarint(raw[at:])
		if n <= 0 || size > uint64(len(raw)-at-n) {
			return nil, corruptError(errCorrupt)
		}
		at += n
		members = append(members, text[at:at+int(size)])
		at += int(size)
	}
	if len(members) != count {
		return nil, corruptError(errCorrupt)
	}
	return members, nil
}

func corruptError(err error) error {
	return core.WrapError(core.CodeInternal, "reading the members of a saved set: they are damaged", err)
}

// sizeOf returns the bytes of members.
func sizeOf(members []string) int {
	size := 0
	for _, m := range members {
		size += len(m)
	}
	return size
}

// storable returns a text as every database can keep it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
