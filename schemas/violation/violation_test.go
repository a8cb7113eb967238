package violation_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/schemas/violation"
)

// TestList: a violation is listed once, in the order in which they are found, and a bounded number of them.
func TestList(t *testing.T) {
	l := violation.NewList("/a", "type", "must be a string")
	l.Add(core.Violation{Pointer: "/a", Keyword: "type", Message: "must be a string"})
	l.Add(core.Violation{Pointer: "/a", Keyword: "maxLength", Message: "is too long"})
	if len(l.Violations) != 2 || l.Violations[1].Keyword != "maxLength" || l.Truncated {
		t.Errorf("%+v", l)
	}
	moved := l.Within("/files/3")
	if moved.Violations[0].Pointer != "/files/3/a" || l.Violations[0].Pointer != "/a" {
		t.Errorf("moved %+v from %+v", moved, l)
	}
	for i := range violation.MaxViolations {
		l.Join(violation.NewList("/b/"+strconv.Itoa(i), "type", "must be a string"))
	}
	if len(l.Violations) != violation.MaxViolations || !l.Truncated {
		t.Errorf("%d violations, truncated %v", len(l.Violations), l.Truncated)
	}
	joined := violation.NewList("", "type", "must be an object")
	joined.Join(&violation.List{Truncated: true})
	if len(joined.Violations) != 1 || !joined.Truncated || !joined.Within("/x").Truncated {
		t.Errorf("joined %+v", joined)
	}
}

// TestInvalid: the message has the first violation, and says how many there are.
func TestInvalid(t *testing.T) {
	for n, want := range map[int]string{
		1: "the body is wrong: the whole: v0",
		2: "the body is wrong: the whole: v0, and 1 more violation",
		3: "the body is wrong: the whole: v0, and 2 more violations",
		violation.MaxViolations + 1: fmt.Sprintf("the body is wrong: the whole: v0, and more; only the first %d violations are listed",
			violation.MaxViolations),
	} {
		var l violation.List
		for i := range n {
			l.Add(core.Violation{Pointer: strings.Repeat("/a", min(i, 1)), Message: "v" + strconv.Itoa(i)})
		}
		err := l.Invalid("schema.violation", "the body is wrong")
		e, known := errors.AsType[*core.Error](err)
		if !known || e.Code != core.CodeInvalid || e.ErrorID != "schema.violation" || e.Message != want || len(e.Violations) != len(l.Violations) {
			t.Errorf("%d violations: %+v, want %q", n, err, want)
		}
		if hinted := core.HintOf(err) != ""; hinted != l.Truncated {
			t.Errorf("%d violations have the hint %q", n, core.HintOf(err))
		}
	}
}

// TestQuoted: what messages quote is bounded, and never cut within a character.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                       `""`,
		`a"b`:                    `"a\"b"`,
		strings.Repeat("é", 80):  `"` + strings.Repeat("é", 80) + `"`,
		strings.Repeat("é", 81):  `"` + strings.Repeat("é", 80) + `…"`,
		strings.Repeat("x", 500): `"` + strings.Repeat("x", 80) + `…"`,
	} {
		if got := violation.Quoted(text); got != want {
			t.Errorf("%q is quoted %s, want %s", text, got, want)
		}
	}
	words := strings.Split(strings.Repeat("w ", violation.MaxListed+2), " ")[:violation.MaxListed+2]
	if got, want := violation.Listed(words), strings.Repeat("w, ", violation.MaxListed-1)+"w and 2 more"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if got := violation.Listed([]string{"a", "b"}); got != "a, b" {
		t.Errorf("listed %s", got)
	}
	if violation.Counted(1, "file", "files") != "1 file" || violation.Counted(0, "file", "files") != "0 files" {
		t.Error("counts have the wrong nouns")
	}
}
