package catalogue

import "testing"

// TestWithLongest: the description of a field says from which length its texts count as missing.
func TestWithLongest(t *testing.T) {
	for _, c := range []struct{ description, characters, want string }{
		{"", "", ""},
		{"A title.", "", "A title."},
		{"", "8191", "A text of more than 8191 characters counts as missing."},
		{"A title.", "64", "A title. A text of more than 64 characters counts as missing."},
		{"A title", "64", "A title. A text of more than 64 characters counts as missing."},
	} {
		if got := withLongest(c.description, c.characters); got != c.want {
			t.Errorf("%q, %q: %q", c.description, c.characters, got)
		}
	}
}
