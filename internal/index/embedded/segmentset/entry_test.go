package segmentset_test

import (
	"bytes"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/index/embedded/segmentset"
)

// FuzzManifest checks that any manifest entry is either rejected or unchanged by decoding and encoding.
func FuzzManifest(f *testing.F) {
	deleted, err := roaring.BitmapOf(1, 5, 70_000).ToBytes()
	if err != nil {
		f.Fatal(err)
	}
	fixed := append([]byte{2}, bytes.Repeat([]byte{0, 3}, 16)...)
	f.Add([]byte("12345678"), append(bytes.Clone(fixed), deleted...))
	f.Add([]byte("12345678"), fixed)
	f.Add([]byte("1234567"), fixed)
	f.Fuzz(func(t *testing.T, key, raw []byte) {
		once, twice, ok := segmentset.Manifest(key, raw)
		if ok && !bytes.Equal(once, twice) {
			t.Errorf("%x became %x", once, twice)
		}
	})
}
