package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
)

// FuzzText holds the package against encoding/json.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,true,null,"x\"y",{"b":{}}]}`, `"plain"`, `"\\"`, `[]`, ` 12`, `[[[]],{"\u0022":"]"}]`, `"12345678"`, `"1234567\""`,
		`""`, `"\ud800"`, `"\ud83d\ude00\ud83d"`, `"\u00e9\n\/\\ 12345678"`, `"\x"`, "\"\t\"", `"\u12G4"`, "\"\xff\\n\"", `0`, `-0.5e-10`,
		`01`, `1.`, `1e`, `-`, `+1`, `.1`, `12345678901234567890`, `"`, `tru`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkValue(t, text)
		checkNumber(t, text)
		if len(text) > 0 && text[0] == '"' {
			checkString(t, text)
		}
	})
}

// checkValue: a valid text is one value, of the same length when more follows it, and compact as encoding/json makes it.
func checkValue(t *testing.T, doc []byte) {
	t.Helper()
	at := jsontext.Space(doc, 0)
	end := jsontext.Value(doc, at)
	if end < at || end > len(doc) {
		t.Fatalf("%d of %d", end, len(doc))
	}
	if !json.Valid(doc) {
		return
	}
	if rest := bytes.TrimSpace(doc[end:]); len(rest) > 0 {
		t.Fatalf("%q is left of %q", rest, doc)
	}
	behind := append(bytes.Clone(doc), `,"more":{"x":"]}"}}`...)
	if again := jsontext.Value(behind, at); again != end {
		t.Fatalf("%d, and %d when more follows", end, again)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, doc); err != nil {
		t.Fatal(err)
	}
	if got, closed := jsontext.AppendCompact([]byte("x"), doc); string(got) != "x"+want.String() || !closed {
		t.Fatalf("%q became %q, %t", doc, got, closed)
	}
}

// checkNumber: a number is what encoding/json accepts that starts like one.
func checkNumber(t *testing.T, text []byte) {
	t.Helper()
	number := json.Valid(text) && strings.IndexByte("-0123456789", text[0]) >= 0 && len(bytes.TrimSpace(text)) == len(text)
	if jsontext.IsNumber(text) != number || jsontext.IsNumber(string(text)) != number {
		t.Fatalf("%q is a number: %t", text, !number)
	}
}

// checkString: a string is valid exactly when encoding/json accepts it, and has the text that it decodes; cut, it is Incomplete.
func checkString(t *testing.T, text []byte) {
	t.Helper()
	plain := string(text)
	end, escaped, state := jsontext.ScanString(text, 0)
	if again, escapedAgain, stateAgain := jsontext.ScanString(plain, 0); again != end || escapedAgain != escaped || stateAgain != state {
		t.Fatalf("%q ends at %d, and at %d as a string", text, end, again)
	}
	if (state == jsontext.Valid && end == len(text)) != (json.Valid(text) && text[len(text)-1] == '"') {
		t.Fatalf("%q: %d, %d", text, end, state)
	}
	if state != jsontext.Valid {
		return
	}
	if again, escapedAgain := jsontext.String(text, 0); again != end || escapedAgain != escaped {
		t.Fatalf("%q ends at %d, and at %d unchecked", text, end, again)
	}
	for cut := 1; cut < end; cut++ {
		if _, _, state := jsontext.ScanString(text[:cut], 0); state != jsontext.Incomplete {
			t.Fatalf("%q: %d", text[:cut], state)
		}
	}
	var want string
	if err := json.Unmarshal(text[:end], &want); err != nil {
		t.Fatal(err)
	}
	got := jsontext.Unquote(text[:end])
	if got != want && utf8.Valid(text[:end]) || got != jsontext.Unescape(plain[1:end-1]) || got != string(jsontext.AppendText(nil, plain[:end])) {
		t.Fatalf("%q is read as %q, want %q", text[:end], got, want)
	}
}
