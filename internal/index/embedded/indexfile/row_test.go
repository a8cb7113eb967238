package indexfile_test

import (
	"bytes"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/embedded/indexfile"
)

// FuzzRow checks that a row is decoded to its document, and that truncated rows are rejected.
func FuzzRow(f *testing.F) {
	f.Add("id", int64(7), []byte(`{}`), 3)
	f.Add("", int64(0), bytes.Repeat([]byte(`{"a":1}`), 100), 0)
	f.Fuzz(func(t *testing.T, id string, version int64, doc []byte, cut int) {
		row := indexfile.AppendRow([]byte("before"), id, core.Version(version), doc)[len("before"):]
		gotID, got, err := indexfile.SplitRow(row)
		if err != nil || string(gotID) != id || !bytes.Equal(got, doc) {
			t.Errorf("%q %q came back as %q %q (%v)", id, doc, gotID, got, err)
		}
		if cut >= 0 && cut < len(row) {
			// A truncated row may be a shorter document, never a longer one.
			if gotID, got, err = indexfile.SplitRow(row[:cut]); err == nil && (len(gotID) > len(id) || len(got) > len(doc)) {
				t.Errorf("a truncated row is %q %q", gotID, got)
			}
		}
		_, _, _ = indexfile.SplitRow(doc)
	})
}
