package mark_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"tutti/http/console/mark"
	"tutti/internal/core"
)

// found is the violation of the tests.
var found = []core.Violation{{Pointer: "/samples/1/id", Message: "must be a string"}}

// TestLines: each violation is shown at the line on which its value begins, or the value around it if the text lacks it.
func TestLines(t *testing.T) {
	for payload, line := range map[string]int{
		"{\"x\":\n\"wrong\",\n\"\\u0073amples\" : [\n{} ,\n{\"a\":{\"id\":[1,\n2]},\n \"id\":\n2}]}": 8,
		"{\"wrong\": 1,\n\"samples\": [\n{}, {}]}":                                                   3,
		"{\"wrong\": 1,\n\"samples\": [\n{}]}":                                                       2,
		"{\"wrong\": 1,\n\"samples\": [\n{\"id\":":                                                   2,
		"{\"wrong\": 1,\n\"samples\"\n[{},{}]}":                                                      1,
		"\n[\"wrong\", {\"samples\": [{}, {}]}]":                                                     2,
		"\n\"wrong\"":                                                                                2,
		"wrong":                                                                                      1,
	} {
		lines := mark.Lines(payload, found, "the analysis")
		if len(lines) != strings.Count(payload, "\n")+1 {
			t.Errorf("%q has %d lines", payload, len(lines))
		}
		for i, got := range lines {
			noted := slices.Equal(got.Notes, []string{"/samples/1/id: must be a string"})
			if got.Number != i+1 || noted != (got.Number == line) || !noted && len(got.Notes) > 0 {
				t.Errorf("%q, to be marked at line %d: %+v", payload, line, got)
			}
		}
	}
	whole := mark.Lines("1\n", []core.Violation{{Message: "must be an object"}}, "the analysis")
	if len(whole) != 2 || !slices.Equal(whole[0].Notes, []string{"the analysis: must be an object"}) {
		t.Errorf("a violation of the whole text: %+v", whole)
	}
	if got := mark.Lines("1", nil, ""); got != nil {
		t.Errorf("without violations: %+v", got)
	}
}

// TestCost: what finding the lines of violations needs follows from the length of a text, not from the lengths of its pointers or
// its depth.
func TestCost(t *testing.T) {
	for name, payload := range map[string]string{
		"long name of a long array": `{"wrong` + strings.Repeat("k", 100_000) + `":[0` + strings.Repeat(",0", 5000) + `],` + "\n" + `"samples":[0,{"id":1}]}`,
		"deep":                      `{"wrong":` + strings.Repeat("[", 20_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		lines := mark.Lines(payload, found, "")
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
			t.Errorf("%s: %d bytes were allocated", name, used)
		}
		if notes := lines[len(lines)-1].Notes; !slices.Equal(notes, []string{"/samples/1/id: must be a string"}) {
			t.Errorf("%s: %q", name, notes)
		}
	}
}
