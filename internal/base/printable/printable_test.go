package printable_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/internal/base/printable"
)

// TestLine: no control characters remain of foreign text.
func TestLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ given, line, lines string }{
		"plain":        {"Étude β “x” 国立\u00a0\\", "Étude β “x” 国立\u00a0\\", "Étude β “x” 国立\u00a0\\"},
		"escape":       {"a\x1b[2Jb", `a\x1b[2Jb`, `a\x1b[2Jb`},
		"line feed":    {"a\n\tb\r", `a\n\tb\r`, "a\n\tb" + `\r`},
		"direction":    {"a\u202eb", `a\u202eb`, `a\u202eb`},
		"line end":     {"a\u2028b", `a\u2028b`, `a\u2028b`},
		"not UTF-8":    {"a\xffb", `a\xffb`, `a\xffb`},
		"C1":           {"a\u009b2J", `a\u009b2J`, `a\u009b2J`},
		"quote":        {`'"`, `'"`, `'"`},
		"beyond plane": {"\U0001f600\U000e0001", "\U0001f600" + `\U000e0001`, "\U0001f600" + `\U000e0001`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := printable.Line(tt.given); got != tt.line {
				t.Errorf("Line %q, want %q", got, tt.line)
			}
			if got := printable.Lines(tt.given); got != tt.lines {
				t.Errorf("Lines %q, want %q", got, tt.lines)
			}
		})
	}
}

// FuzzLine: printable text is unchanged, and the result never contains a control character.
func FuzzLine(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e国")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable.Line(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("%q of %q", got, s)
		}
		if again := printable.Line(got); again != got {
			t.Errorf("%q of %q", again, got)
		}
	})
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "国立": 4, "한": 2, "😀": 2, "█·…": 3} {
		if got := printable.Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}
