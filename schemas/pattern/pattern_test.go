package pattern_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/schemas/pattern"
)

// TestECMA262: what is accepted means what a JavaScript engine says (V8 of Node.js 20, whose answers the file has), with the flag u or,
// where that refuses the expression, by annex B; what neither accepts is refused.
func TestECMA262(t *testing.T) {
	file, err := os.ReadFile("testdata/ecma262.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers struct {
		Texts    []string
		Patterns []struct {
			Pattern string
			// Mode is "u", "b" for annex B, or "invalid".
			Mode    string
			Matches []int
		}
	}
	if err := json.Unmarshal(file, &answers); err != nil {
		t.Fatal(err)
	}
	// Expressions of ECMA-262 with the flag u that are refused.
	unsupported := []string{
		`^(?:(a)|b)*\1$`, `\p{Script_Extensions=Greek}`, `\p{Emoji}`, `\uD83D`, `[\uD800-\uDFFF]`, `a{99999999999}`,
	}
	for _, a := range answers.Patterns {
		t.Run(a.Pattern, func(t *testing.T) {
			e, err := pattern.Compile(a.Pattern)
			switch {
			case err != nil && a.Mode == "u" && !slices.Contains(unsupported, a.Pattern):
				t.Fatalf("refused: %v", err)
			case err != nil:
				t.Log(err)
				return
			case a.Mode == "invalid":
				t.Fatal("accepted")
			case slices.Contains(unsupported, a.Pattern):
				t.Fatal("accepted; take it from the list")
			}
			for i, text := range answers.Texts {
				if got, want := e.Match(text, &atomic.Bool{}), slices.Contains(a.Matches, i); got != want {
					t.Errorf("%q: matches %t, want %t", text, got, want)
				}
			}
		})
	}
}

// TestRefused: what other dialects know is refused by name, with what to write instead.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`a\z`, `it has \z, which ECMA-262 does not know; the end of a text is $`},
		{`\Aa`, `it has \A, which ECMA-262 does not know; the begin of a text is ^`},
		{`\Qa.b\E`, `it has \Q, which ECMA-262 does not know; escape each character`},
		{`[[:alpha:]]`, "it has a class of POSIX"},
		{`[a-z&&[^b]]`, "it has a class within a class"},
		{`(?i)a`, "it has (?i, which is not supported"},
		{`(?P<n>a)`, "it has a named group in a form that ECMA-262 does not know; write (?<name>…)"},
		{`a++`, "it has a possessive quantifier"},
		{`a{,3}`, "it has a quantifier without a least number"},
		{`\p{Greek}`, `it has \p{Greek}, which is not a property of Unicode that is supported`},
		{`\012`, "it has an octal escape"},
		{`\uD83D`, "it has a single surrogate"},
		{`^(?:(a)|b)*\1$`, `it has \1, which refers to a group within a repetition`},
	} {
		_, err := pattern.Compile(c.pattern)
		if refused, ok := errors.AsType[*pattern.SyntaxError](err); !ok || !strings.HasPrefix(refused.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.pattern, err, c.want)
		}
		var stored pattern.Set
		stored.Stored = true
		if _, err := stored.Compile(c.pattern); err != nil && (strings.HasPrefix(c.pattern, `\A`) || strings.HasPrefix(c.pattern, "[[")) {
			t.Errorf("%s of a stored schema: %v", c.pattern, err)
		}
	}
}
