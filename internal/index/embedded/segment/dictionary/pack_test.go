package dictionary_test

import (
	"bytes"
	"strings"
	"testing"

	"tutti/internal/index/embedded/segment/dictionary"
)

func TestPack(t *testing.T) {
	tests := map[string]struct {
		text string
		size int
	}{
		"nothing":      {"", 0},
		"word":         {"Total RNA", 9},
		"uuid":         {"0f8fad5b-d9cb-469f-a165-70867728950e", 17},
		"upper uuid":   {"0F8FAD5B-D9CB-469F-A165-70867728950E", 33},
		"uuid in text": {"x 0f8fad5b-d9cb-469f-a165-70867728950e.bam", 23},
		"no uuid":      {"0f8fad5b-d9cb-469f-a165-70867728950g", 31},
		"checksum":     {"d41d8cd98f00b204e9800998ecf8427e", 18},
		"odd digits":   {"d41d8cd98", 7},
		"few digits":   {"d41d8cd", 7},
		"many digits":  {strings.Repeat("ab", 300), 2 + 255 + 90},
		"marks":        {"\x00\x01\x02\x03\x04", 8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			packed := dictionary.Pack([]byte(test.text))
			if got := string(dictionary.Unpack(packed)); got != test.text || len(packed) != test.size {
				t.Errorf("%q is packed to %d bytes, want %d, and back to %q", test.text, len(packed), test.size, got)
			}
		})
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("0f8fad5b-d9cb-469f-a165-70867728950e.\x01d41d8cd98f00b204e9800998ecf8427e"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := dictionary.Unpack(dictionary.Pack(text)); !bytes.Equal(got, text) {
			t.Errorf("%q is packed and back to %q", text, got)
		}
		dictionary.Unpack(text) // must not panic
	})
}
