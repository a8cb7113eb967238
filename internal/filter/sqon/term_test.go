package sqon_test

import (
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/filter/sqon"
)

func TestTerm(t *testing.T) {
	for text, want := range map[string]sqon.Term{
		"":             {},
		"x":            {Text: "x"},
		"why?":         {Text: "why?"},
		`C:\data`:      {Text: `C:\data`},
		`x\`:           {Text: `x\`},
		`HLA-A\*02:01`: {Text: "HLA-A*02:01"},
		`\?\\\*`:       {Text: `?\*`},
		`\\*`:          {Kind: sqon.TermPattern, Pattern: `\\*`},
		"x*":           {Kind: sqon.TermPattern, Pattern: "x*"},
		`a?\?*\*\b\`:   {Kind: sqon.TermPattern, Pattern: `a?\?*\*\\b\\`},
		"__missing__":  {Kind: sqon.TermMissing},
		"__missing__ ": {Text: "__missing__ "},
		"__MISSING__":  {Text: "__MISSING__"},
		"set_id:":      {Kind: sqon.TermSet},
		"set_id:a*b":   {Kind: sqon.TermSet, Text: "a*b"},
		" set_id:a":    {Text: " set_id:a"},
		`\set_id:a`:    {Text: `\set_id:a`},
		"*__missing__": {Kind: sqon.TermPattern, Pattern: "*__missing__"},
		"日本*":          {Kind: sqon.TermPattern, Pattern: "日本*"},
	} {
		t.Run(text, func(t *testing.T) {
			if got := (sqon.Value{Text: text}).Term(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	t.Run("numbers and booleans are plain", func(t *testing.T) {
		for _, v := range []sqon.Value{{Kind: sqon.Number, Text: "1"}, {Kind: sqon.Bool, Text: "true"}} {
			if got := v.Term(); got != (sqon.Term{Text: v.Text}) {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestValuePattern(t *testing.T) {
	for text, want := range map[string]sqon.Pattern{
		"":        "**",
		"x":       "*x*",
		"x*":      "x*",
		"x?":      "x?",
		`x\?`:     `*x\?*`,
		`a\b`:     `*a\\b*`,
		`\\?`:     `\\?`,
		`\*\*`:    `*\*\**`,
		"set_id:": "*set_id:*",
	} {
		t.Run(text, func(t *testing.T) {
			if got := (sqon.Value{Text: text}).Pattern(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// texts returns texts with many special characters.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]rune(`ab*?\é😀_`)), 0, 8).Draw(t, "text"))
	})
}

func TestEscapeLaws(t *testing.T) {
	t.Run("an escaped text means itself", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(texts(), rapid.String()).Draw(t, "text")
			value := sqon.Value{Text: sqon.Escape(text)}
			if got := value.Term(); got != (sqon.Term{Text: text}) && text != "__missing__" && got.Kind != sqon.TermSet {
				t.Errorf("%q became %+v", text, got)
			}
			if !value.Pattern().Match(text) {
				t.Errorf("the pattern of %q does not match it", text)
			}
		})
	})
	t.Run("what cannot be escaped keeps its meaning", func(t *testing.T) {
		for text, want := range map[string]sqon.TermKind{"__missing__": sqon.TermMissing, "set_id:*": sqon.TermSet} {
			if got := (sqon.Value{Text: sqon.Escape(text)}).Term().Kind; got != want || sqon.Escape(text) != text {
				t.Errorf("%s became %d", text, got)
			}
		}
	})
}

func TestPatternMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern    sqon.Pattern
		text       string
		want, fold bool
	}{
		{"", "", true, true},
		{"", "a", false, false},
		{"*", "", true, true},
		{"?", "", false, false},
		{"?", "é", true, true},
		{"??", "é", false, false},
		{"a*c", "abcbc", true, true},
		{"a*c", "abcb", false, false},
		{"*b*d*", "abcde", true, true},
		{"*?b", "éb", true, true},
		{"*?b", "b", false, false},
		{"*??", "日", false, false},
		{"*??", "日本", true, true},
		{"*é", "xxé", true, true},
		{"A*", "abc", false, true},
		{"É", "é", false, false},
		{"[", "{", false, false},
		{"@", "`", false, false},
		{`\*`, "*", true, true},
		{`\*`, "a", false, false},
		{`*\?`, "a?", true, true},
		{`*\?`, "ab", false, false},
		{`\\*`, `\x`, true, true},
	} {
		t.Run(string(tt.pattern)+" "+tt.text, func(t *testing.T) {
			if got := tt.pattern.Match(tt.text); got != tt.want {
				t.Errorf("Match returns %t", got)
			}
			if got := tt.pattern.MatchFold(tt.text); got != tt.fold {
				t.Errorf("MatchFold returns %t", got)
			}
		})
	}
}

// TestPatternMatchLaw compares with a direct implementation of the definition.
func TestPatternMatchLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := sqon.Value{Text: texts().Draw(t, "pattern")}.Pattern()
		text := texts().Draw(t, "text")
		if got, want := pattern.Match(text), matches([]rune(string(pattern)), []rune(text)); got != want {
			t.Errorf("%s with %s: %t, want %t", pattern, text, got, want)
		}
		if prefix := pattern.Prefix(); pattern.Match(text) && (len(text) < len(prefix) || text[:len(prefix)] != prefix) {
			t.Errorf("%s matches %s, which does not begin with %s", pattern, text, prefix)
		}
	})
}

func matches(pattern, text []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(text) == 0
	case pattern[0] == '*':
		return matches(pattern[1:], text) || len(text) > 0 && matches(pattern, text[1:])
	case len(text) == 0:
		return false
	case pattern[0] == '?':
		return matches(pattern[1:], text[1:])
	case pattern[0] == '\\':
		return pattern[1] == text[0] && matches(pattern[2:], text[1:])
	default:
		return pattern[0] == text[0] && matches(pattern[1:], text[1:])
	}
}

func TestPatternPrefix(t *testing.T) {
	for pattern, want := range map[sqon.Pattern]string{"": "", "abc": "abc", "ab*c": "ab", "?b": "", `a\*b\\c?`: `a*b\c`} {
		if got := pattern.Prefix(); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
