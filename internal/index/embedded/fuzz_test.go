package embedded_test

import (
	"bytes"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
	"tutti/internal/index/embedded"
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
		once, twice, ok := embedded.Manifest(key, raw)
		if ok && !bytes.Equal(once, twice) {
			t.Errorf("%x became %x", once, twice)
		}
	})
}

// FuzzRow checks that a row is decoded to its document, and that truncated rows are rejected.
func FuzzRow(f *testing.F) {
	f.Add("id", int64(7), []byte(`{}`), 3)
	f.Add("", int64(0), bytes.Repeat([]byte(`{"a":1}`), 100), 0)
	f.Fuzz(func(t *testing.T, id string, version int64, doc []byte, cut int) {
		row := embedded.AppendRow([]byte("before"), id, core.Version(version), doc)[len("before"):]
		gotID, got, err := embedded.Row(row)
		if err != nil || string(gotID) != id || !bytes.Equal(got, doc) {
			t.Errorf("%q %q came back as %q %q (%v)", id, doc, gotID, got, err)
		}
		if cut >= 0 && cut < len(row) {
			// A truncated row may be a shorter document, never a longer one.
			if gotID, got, err = embedded.Row(row[:cut]); err == nil && (len(gotID) > len(id) || len(got) > len(doc)) {
				t.Errorf("a truncated row is %q %q", gotID, got)
			}
		}
		_, _, _ = embedded.Row(doc)
	})
}
