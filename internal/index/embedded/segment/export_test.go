package segment

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
)

// Reseal recomputes the checksums of a modified file, as far as its directory can be read.
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
		binary.LittleEndian.PutUint32(file[end:], crc32.Checksum(file[at:end], crcTable()))
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

// Pack returns the packed form of text.
func Pack(text []byte) []byte { return pack(nil, text) }

// Unpack is the reverse of Pack.
func Unpack(packed []byte) []byte { return unpack(nil, packed) }

// MaxPlain is the largest number of texts of a merged column that is not packed.
const MaxPlain = maxPlain
