package embedded_test

import (
	"bytes"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"tutti/internal/core"
	"tutti/internal/index/embedded"
)

// FuzzManifest holds that an entry of the manifest, whatever it is, is refused or stays what it is.
func FuzzManifest(f *testing.F) {
	dead, err := roaring.BitmapOf(1, 5, 70_000).ToBytes()
	if err != nil {
		f.Fatal(err)
	}
	fixed := append([]byte{2}, bytes.Repeat([]byte{0, 3}, 16)...)
	f.Add([]byte("12345678"), append(bytes.Clone(fixed), dead...))
	f.Add([]byte("12345678"), fixed)
	f.Add([]byte("1234567"), fixed)
	f.Fuzz(func(t *testing.T, key, raw []byte) {
		once, twice, ok := embedded.Manifest(key, raw)
		if ok && !bytes.Equal(once, twice) {
			t.Errorf("%x became %x", once, twice)
		}
	})
}

// FuzzRow holds that a row gives back what is in it, and that spoilt rows are refused.
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
			// It may be a shorter document, but never more than there was.
			if gotID, got, err = embedded.Row(row[:cut]); err == nil && (len(gotID) > len(id) || len(got) > len(doc)) {
				t.Errorf("a cut row gave %q %q", gotID, got)
			}
		}
		_, _, _ = embedded.Row(doc)
	})
}
