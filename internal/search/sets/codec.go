package sets

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tutti/internal/core"
)

// errCorrupt is the cause of an error about a blob that codec did not write.
var errCorrupt = errors.New("unexpected encoding of members")

// minDecoderMemory is the minimum size limit for reading a set, in bytes: it may have been saved under a higher limit.
const minDecoderMemory = 64 << 20

// codec encodes members as one compressed blob of length-prefixed strings.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newCodec returns a codec for members of at most maxBytes, without their lengths.
func newCodec(maxBytes, maxMembers int) (*codec, error) {
	const doing = "initializing the compression of saved sets"
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

// pack encodes members.
func (p *codec) pack(members []string) []byte {
	var raw []byte
	for _, m := range members {
		raw = binary.AppendUvarint(raw, uint64(len(m)))
		raw = append(raw, m...)
	}
	return p.encoder.EncodeAll(raw, nil)
}

// unpack decodes a blob of count members.
func (p *codec) unpack(blob []byte, count int) ([]string, error) {
	raw, err := p.decoder.DecodeAll(blob, nil)
	if err != nil {
		return nil, corruptError(err)
	}
	// All members share the bytes of one string. Each takes at least one byte.
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
	return core.WrapError(core.CodeInternal, "reading the members of a saved set: they are corrupt", err)
}

// sizeOf returns the total size of members in bytes.
func sizeOf(members []string) int {
	size := 0
	for _, m := range members {
		size += len(m)
	}
	return size
}

// storable returns a string without bytes that databases reject.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
