package segmentset_test

import (
	"os"
	"testing"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/embedded/segmentset"
	"tutti/internal/index/mapping"
)

// TestAnotherFile checks that a file is rejected that is valid and as long as the expected one, but another: its own checksums
// match.
func TestAnotherFile(t *testing.T) {
	made := func(dir, word string) (path string, read func() (*segment.Segment, error)) {
		b := segment.NewBuilder(mapping.Song())
		if err := b.Add(1, "d1", []byte(`{"studyId":"`+word+`"}`)); err != nil {
			t.Fatal(err)
		}
		path, read, err := segmentset.Keep(dir, b.Segment())
		if err != nil {
			t.Fatal(err)
		}
		return path, read
	}
	path, read := made(t.TempDir(), "S1")
	other, readOther := made(t.TempDir(), "S2")
	for _, read := range []func() (*segment.Segment, error){read, readOther} {
		if s, err := read(); err != nil || s.Documents() != 1 {
			t.Fatalf("what was written returned %v", err)
		}
	}
	raw, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "the checksum of the file has changed" {
		t.Errorf("another file returned %v", err)
	}
}
