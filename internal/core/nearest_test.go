package core_test

import (
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
)

func TestNearest(t *testing.T) {
	tests := map[string]struct {
		given          string
		candidates     []string
		nearest, meant string
	}{
		"none":                  {"pivot", nil, "", ""},
		"itself":                {"pivot", []string{"op", "pivot"}, "pivot", "pivot"},
		"letters in turn":       {"pviot", []string{"op", "content", "pivot"}, "pivot", "pivot"},
		"another case":          {"EsIndex", []string{"extended", "esIndex"}, "esIndex", "esIndex"},
		"the first of equals":   {"ab", []string{"ax", "ay"}, "ax", "ax"},
		"a longer one is nigh":  {"index", []string{"idx", "indexName"}, "idx", "idx"},
		"it begins the same":    {"repo", []string{"repositories"}, "repositories", "repositories"},
		"nothing in common":     {"zzzz", []string{"op", "content"}, "op", ""},
		"half is the same":      {"abxx", []string{"abyy"}, "abyy", "abyy"},
		"less than half is":     {"axxx", []string{"ayyy"}, "ayyy", ""},
		"runes, not bytes":      {"größe", []string{"grösse", "grade"}, "grösse", "grösse"},
		"nothing given":         {"", []string{"op"}, "op", ""},
		"an endless name":       {strings.Repeat("x", 1<<20), []string{"op", strings.Repeat("x", 150)}, strings.Repeat("x", 150), strings.Repeat("x", 150)},
		"cut in a rune":         {strings.Repeat("x", 199) + "é", []string{strings.Repeat("x", 199) + "é"}, strings.Repeat("x", 199) + "é", strings.Repeat("x", 199) + "é"},
		"an empty one is there": {"a", []string{"", "bbb"}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := core.Nearest(test.given, slices.Values(test.candidates)); got != test.nearest {
				t.Errorf("the nearest is %q, want %q", got, test.nearest)
			}
			if got := core.Meant(test.given, slices.Values(test.candidates)); got != test.meant {
				t.Errorf("meant is %q, want %q", got, test.meant)
			}
		})
	}
}
