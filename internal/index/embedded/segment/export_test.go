package segment

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// Reseal makes the checksums of a damaged file right again, as far as its directory can still be read.
func Reseal(file []byte) {
	if len(file) < headerSize {
		return
	}
	binary.LittleEndian.PutUint64(file[16:], uint64(len(file)))
	at, length := uint64(0), headerSize+padded(binary.LittleEndian.Uint64(file[24:]))
	dir := directory{}
	for number := uint32(0); ; number++ {
		if length > uint64(len(file)) || at+length+trailerSize > uint64(len(file)) {
			return
		}
		end := at + length
		binary.LittleEndian.PutUint32(file[end:], crc32.Checksum(file[at:end], checksums()))
		if number == 0 {
			if json.Unmarshal(file[headerSize:headerSize+binary.LittleEndian.Uint64(file[24:])], &dir) != nil {
				return
			}
		}
		for int(number) < len(dir.Sections) && dir.Sections[number].Same > 0 {
			number++
		}
		if int(number) >= len(dir.Sections) {
			return
		}
		at, length = end+trailerSize, padded(dir.Sections[number].Length)
	}
}

// Pack is pack, Unpack unpack.
func Pack(text []byte) []byte { return pack(nil, text) }

// Unpack is the reverse of Pack.
func Unpack(packed []byte) []byte { return unpack(nil, packed) }

// MaxPlain is how many texts a merged column has at most that are not packed.
const MaxPlain = maxPlain
