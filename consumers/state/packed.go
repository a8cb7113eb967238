package state

import (
	"encoding/binary"
	"slices"
)

// PackIDs returns hashes, sorted, as core.OrganizationRun.IDs.
func PackIDs(hashes []uint64) []byte {
	if len(hashes) == 0 {
		return nil
	}
	sorted := slices.Clone(hashes)
	slices.Sort(sorted)
	packed := make([]byte, 0, 8*len(sorted))
	for _, hash := range sorted {
		packed = binary.LittleEndian.AppendUint64(packed, hash)
	}
	return packed
}

// UnpackIDs reverses PackIDs.
func UnpackIDs(packed []byte) []uint64 {
	hashes := make([]uint64, 0, len(packed)/8)
	for ; len(packed) >= 8; packed = packed[8:] {
		hashes = append(hashes, binary.LittleEndian.Uint64(packed))
	}
	return hashes
}
