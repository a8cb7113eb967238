package display_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/client/display"
)

// TestPrintable: no control characters remain of foreign text.
func TestPrintable(t *testing.T) {
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
			if got := display.Printable(tt.given); got != tt.line {
				t.Errorf("Printable %q, want %q", got, tt.line)
			}
			if got := display.PrintableLines(tt.given); got != tt.lines {
				t.Errorf("PrintableLines %q, want %q", got, tt.lines)
			}
		})
	}
}

// FuzzPrintable: printable text is unchanged, and the result never contains a control character.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e国")
	f.Fuzz(func(t *testing.T, s string) {
		got := display.Printable(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("%q of %q", got, s)
		}
		if again := display.Printable(got); again != got {
			t.Errorf("%q of %q", again, got)
		}
	})
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "国立": 4, "한": 2, "😀": 2, "█·…": 3} {
		if got := display.Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestCountAndDuration(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 12: "12", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := display.Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567 * time.Nanosecond: "1ms", 1500 * time.Millisecond: "1.5s", 12345 * time.Millisecond: "12s",
		61 * time.Second: "1m1s", time.Hour + 90*time.Second: "1h2m",
	} {
		if got := display.Duration(d); got != want {
			t.Errorf("Duration(%d) = %s, want %s", d, got, want)
		}
	}
	for perSecond, want := range map[float64]string{0: "0/s", 0.25: "0.2/s", 3.6: "3.6/s", 1234.5: "1,235/s"} {
		if got := display.Rate(perSecond); got != want {
			t.Errorf("Rate(%f) = %s, want %s", perSecond, got, want)
		}
	}
	if got := display.Time(time.Time{}); got != "-" {
		t.Errorf("no time is %s", got)
	}
	at := time.Date(2026, 5, 4, 12, 0, 0, 999, time.UTC)
	if parsed, err := time.Parse(time.RFC3339, display.Time(at)); err != nil || !parsed.Equal(at.Truncate(time.Second)) {
		t.Errorf("%s, %v", parsed, err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	table := display.NewTable("NAME", ">N", "LAST")
	table.Row("国立", "7", "")
	table.Row("a\nb", "1,000", "x")
	table.Row("short")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME       N  LAST\n国立       7  -\na\\nb   1,000  x\nshort      -  -\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if err := table.Write(failingWriter{}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

func TestKeyValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := display.KeyValues(&out, "id", "7", "nothing here", "", "reason", "a\nb"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("id      7\nreason  a\\nb\n", out.String()); diff != "" {
		t.Error(diff)
	}
	if err := display.KeyValues(failingWriter{}, "id", "7"); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

var errFull = errors.New("no space")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
