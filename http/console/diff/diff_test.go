package diff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tutti/http/console/diff"
)

func TestLines(t *testing.T) {
	got := diff.Lines("a\nb\nc\nd", "a\nc\nx\nd")
	want := []diff.Line{
		{Kind: diff.Same, Text: "a", Old: 1, New: 1},
		{Kind: diff.Removed, Text: "b", Old: 2},
		{Kind: diff.Same, Text: "c", Old: 3, New: 2},
		{Kind: diff.Added, Text: "x", New: 3},
		{Kind: diff.Same, Text: "d", Old: 4, New: 4},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestLinesAreBothTexts: without the added lines a comparison is the first text, without the removed ones the second.
func TestLinesAreBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), 1, 12).Draw(t, "lines"), "\n")
		})
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var before, after []string
		lines := diff.Lines(a, b)
		for _, l := range lines {
			if l.Kind != diff.Added {
				before = append(before, l.Text)
				if l.Old != len(before) {
					t.Fatalf("line %d has the number %d", len(before), l.Old)
				}
			}
			if l.Kind != diff.Removed {
				after = append(after, l.Text)
				if l.New != len(after) {
					t.Fatalf("line %d has the number %d", len(after), l.New)
				}
			}
		}
		if strings.Join(before, "\n") != a || strings.Join(after, "\n") != b || diff.Changed(lines) != (a != b) {
			t.Fatalf("%q to %q: %v", a, b, lines)
		}
	})
}
