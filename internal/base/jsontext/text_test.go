package jsontext_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tutti/internal/base/jsontext"
)

func TestAppendCompact(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      " closed",
		" {\n\"a b\" : [ 1 ,\t\"\\\" \"] }\r\n": `{"a b":[1,"\" "]} closed`,
		`[ {"a": "x ] }`:                        `[{"a":"x ] }`,
		`[1, 2`:                                 `[1,2`,
	} {
		got, closed := jsontext.AppendCompact(nil, []byte(text))
		if closed {
			got = append(got, " closed"...)
		}
		if string(got) != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// TestAppendUnescaped: what is not JSON stays as it is.
func TestAppendUnescaped(t *testing.T) {
	for inside, want := range map[string]string{
		`a\tb\u00e9\/`: "a\tb\u00e9/", `\ud83d`: "\ufffd", `\ud83dx\ude00`: "\ufffdx\ufffd", `\x\n`: "\\x\n", `a\`: `a\`, `\u12`: `\u12`,
		"\x01\\n\"\xff": "\x01\n\"\xff",
	} {
		if got := jsontext.AppendUnescaped([]byte("<"), inside); string(got) != "<"+want {
			t.Errorf("%s is %q, want %q", inside, got, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for raw, want := range map[string][2]string{ // Unquote and AppendText
		`"a\n"`: {"a\n", "a\n"}, `""`: {"", ""}, `12`: {"", "12"}, `"`: {"", `"`}, ``: {"", ""}, `{"a":"b"}`: {"", `{"a":"b"}`},
	} {
		if got := [2]string{jsontext.Unquote(raw), string(jsontext.AppendText(nil, raw))}; got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}

// FuzzAppendString: encoding/json decodes the text that was appended.
func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"", "a", "\"\\/\n\t\r\b\x00\x1f\x7f", "\u00e9\u2028\U0001f600", "\xff\xc3", "\ufffd<&>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw := jsontext.AppendString([]byte("[1,"), text)
		var all []any
		if err := json.Unmarshal(append(raw, ']'), &all); err != nil || all[1] != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%q became %s: %v", text, raw, err)
		}
		if kept := jsontext.AppendRawString(nil, text); jsontext.Unquote(kept) != text {
			t.Fatalf("%q became %q", text, kept)
		}
	})
}

func TestAppendString(t *testing.T) {
	const text = "a\"\\/\n\t\r\b\x1f\x7f\u00e9<\xff"
	for want, got := range map[string][]byte{
		`["a\"\\/\n\t\r\u0008\u001f` + "\x7f\u00e9<\ufffd\"": jsontext.AppendString([]byte("["), text),
		`["a\"\\/\n\t\r\u0008\u001f` + "\x7f\u00e9<\xff\"":   jsontext.AppendRawString([]byte("["), text),
	} {
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTooDeep(t *testing.T) {
	for text, deep := range map[string]bool{
		"":                                  false,
		`{"a":[{"b":1}]}`:                   false,
		`[[[[`:                              true,
		`[[[`:                               false,
		`{"a":{"b":{"c":{}}}}`:              true,
		`[[],[[]],[],[[]]]`:                 false,
		`{"a":"[[[[[["}`:                    false,
		`{"a":"\"[[[[[["}`:                  false,
		`["\\",[[[`:                         true,
		strings.Repeat("[]", 1000):          false,
		strings.Repeat(`{"a":`, 10_000_000): true,
	} {
		if got := jsontext.TooDeep([]byte(text), 3); got != deep {
			t.Errorf("%.40s: %t, want %t", text, got, deep)
		}
	}
}

func ExampleAppendText() {
	fmt.Printf("%s\n", jsontext.AppendText(nil, `"a\u00e9"`))
	fmt.Printf("%s\n", jsontext.AppendText(nil, `1.50`))
	// Output:
	// aé
	// 1.50
}

func TestIndented(t *testing.T) {
	deep := func(levels, items int) string {
		return strings.Repeat("[", levels) + "0" + strings.Repeat(",0", items) + strings.Repeat("]", levels)
	}
	for text, want := range map[string]string{
		`{"a":[1,{}],"b":"[,"}`: "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"[,\"\n}",
		"1":                     "1", "": "", "{": "", "text, [with {": "", "[1}": "",
		deep(9000, 0):      "",
		deep(400, 120_000): "",
	} {
		if got, ok := jsontext.Indented([]byte(text)); got != want || ok != (want != "") {
			t.Errorf("%.40s: got %.80q, %v", text, got, ok)
		}
	}
	for _, text := range []string{deep(40, 100_000), deep(500, 1000)} {
		got, ok := jsontext.Indented([]byte(text))
		if !ok || len(got) > 20<<20 {
			t.Errorf("%.40s: %v, %d bytes", text, ok, len(got))
		}
	}
}

// TestIsDay: the days are those of the time package, up to the 28th.
func TestIsDay(t *testing.T) {
	t.Parallel()
	for _, year := range []string{"1000", "2026", "9999", "0999", "20a6", "202"} {
		for month := range 15 {
			for day := range 33 {
				text := fmt.Sprintf("%s-%02d-%02d", year, month, day)
				_, err := time.Parse(time.DateOnly, text)
				if want := err == nil && day <= 28 && year >= "1000"; jsontext.IsDay(text) != want {
					t.Errorf("%s is a day: %t", text, !want)
				}
			}
		}
	}
	for _, text := range []string{"", "2026-03-01T", "2026/03-01", "2026-03/01", "2026-03- 1", "2026-3-001", "+026-03-01"} {
		if jsontext.IsDay(text) {
			t.Errorf("%s is a day", text)
		}
	}
}

// TestNumber: encoding/json writes numbers as JavaScript does.
func TestNumber(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e-7, -1e-7, 1e-10, 5e-324, 1e20, 1e21, 1.5e300, -1e21, 1e100, 0.1, 3}
	for range 10_000 {
		if v := math.Float64frombits(r.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	for _, v := range values {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsontext.Number(v); got != string(want) {
			t.Errorf("%g is %s, want %s", v, got, want)
		}
	}
}
