package spelling_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/base/spelling"
)

func TestNearest(t *testing.T) {
	tests := map[string]struct {
		given          string
		candidates     []string
		nearest, meant string
	}{
		"none":                  {"pivot", nil, "", ""},
		"itself":                {"pivot", []string{"op", "pivot"}, "pivot", ""},
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
		"cut in a rune":         {strings.Repeat("x", 63) + "é", []string{strings.Repeat("x", 62), strings.Repeat("x", 63) + "ü"}, strings.Repeat("x", 63) + "ü", strings.Repeat("x", 63) + "ü"},
		"nothing of that rune":  {strings.Repeat("x", 63) + "é", []string{strings.Repeat("x", 63) + "z", strings.Repeat("x", 63)}, strings.Repeat("x", 63), strings.Repeat("x", 63)},
		"continuation bytes":    {strings.Repeat("\x80", 100), []string{"op"}, "op", ""},
		"alike for 64 bytes":    {strings.Repeat("x", 64) + "a", []string{strings.Repeat("x", 64) + "b", strings.Repeat("x", 64) + "a"}, strings.Repeat("x", 64) + "b", strings.Repeat("x", 64) + "b"},
		"far behind":            {"cohort", append(slices.Repeat([]string{"something_else"}, 1000), "kohort"), "kohort", "kohort"},
		"far away":              {"a", []string{strings.Repeat("b", 64)}, strings.Repeat("b", 64), ""},
		"an empty one is there": {"a", []string{"", "bbb"}, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := spelling.Nearest(test.given, slices.Values(test.candidates)); got != test.nearest {
				t.Errorf("the nearest is %q, want %q", got, test.nearest)
			}
			if got := spelling.Suggest(test.given, slices.Values(test.candidates)); got != test.meant {
				t.Errorf("meant is %q, want %q", got, test.meant)
			}
		})
	}
}

// TestNearestLaw compares with the definition of the distance by exhaustive search.
func TestNearestLaw(t *testing.T) {
	name := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]rune("abBé_")), 0, 12).Draw(t, "name"))
	})
	rapid.Check(t, func(t *rapid.T) {
		given, candidates := name.Draw(t, "given"), rapid.SliceOfN(name, 1, 6).Draw(t, "candidates")
		want := slices.MinFunc(candidates, func(a, b string) int { return edits(given, a) - edits(given, b) })
		if got := spelling.Nearest(given, slices.Values(candidates)); got != want {
			t.Errorf("%q is %d from %q, want %q, %d", got, edits(given, got), given, want, edits(given, want))
		}
	})
}

// edits returns the Levenshtein distance by a complete table.
func edits(from, to string) int {
	a, b := []rune(strings.ToLower(from)), []rune(strings.ToLower(to))
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
			}
		}
	}
	return table[len(a)][len(b)]
}

// manyNames returns names of 60 bytes with little in common but their length.
func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		// a large odd multiplier distributes the digits
		names[i] = fmt.Sprintf("%020d%020d%020d", uint64(i)*0x9e3779b97f4a7c15, uint64(i)*0xbf58476d1ce4e5b9, uint64(i)*0x94d049bb133111eb)
	}
	return names
}

func TestNearestIsBounded(t *testing.T) {
	const allowed = spelling.MaxSteps + 65*66
	names := manyNames(10_000)
	slip := []byte(names[9_999])
	slip[30], slip[40] = 'x', 'y'
	for name, tt := range map[string]struct{ given, want string }{
		"a slip in the last":     {string(slip), names[9_999]},
		"nothing is near":        {strings.Repeat("x", 60), ""},
		"a long one":             {strings.Repeat("0", 1<<20), ""},
		"a short one":            {"x", ""},
		"letters of many others": {strings.Repeat("0123456789", 6), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pulled := 0
			candidates := func(yield func(string) bool) {
				for _, name := range names {
					if pulled++; !yield(name) {
						return
					}
				}
			}
			got, steps := spelling.NearestSteps(tt.given, candidates)
			if steps > allowed || pulled > allowed/61 {
				t.Errorf("%d steps for %d names", steps, pulled)
			}
			if tt.want != "" && got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if again, more := spelling.NearestSteps(tt.given, candidates); again != got || more != steps {
				t.Errorf("%s after %d steps, then %s after %d", got, steps, again, more)
			}
		})
	}
	t.Run("names without end", func(t *testing.T) {
		_, steps := spelling.NearestSteps("x", func(yield func(string) bool) {
			for yield("") {
			}
		})
		if steps > allowed {
			t.Errorf("%d steps", steps)
		}
	})
}

// TestNearestSteps: close names cost little, distant ones as much as comparing all letters.
func TestNearestSteps(t *testing.T) {
	given, near := strings.Repeat("x", 60), strings.Repeat("x", 30)+"y"+strings.Repeat("x", 29)
	if _, steps := spelling.NearestSteps(given, slices.Values([]string{near})); steps < 60*2 || steps > 60*6 {
		t.Errorf("one that is near costs %d steps", steps)
	}
	if _, steps := spelling.NearestSteps(given, slices.Values([]string{strings.Repeat("y", 60)})); steps < 60*60 || steps > 3*60*60 {
		t.Errorf("one that is far costs %d steps", steps)
	}
}
