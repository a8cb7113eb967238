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
		if ok && (!bytes.Equal(once, twice) || !bytes.HasPrefix(raw, once[:len(fixed)])) {
			t.Errorf("%x became %x and %x", raw, once, twice)
		}
	})
}

// TestEntryOfMissingDocument checks that an entry is rejected whose deletions are not documents of its file.
func TestEntryOfMissingDocument(t *testing.T) {
	const documents = 3
	entry := append([]byte{2}, make([]byte, 32)...)
	entry[20] = documents
	for document, want := range map[uint32]bool{documents - 1: true, documents: false} {
		deleted, err := roaring.BitmapOf(document).ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := segmentset.ReadEntry([]byte("12345678"), append(bytes.Clone(entry), deleted...)); ok != want {
			t.Errorf("document %d of %d: %v", document, documents, ok)
		}
	}
}
