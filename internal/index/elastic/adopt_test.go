package elastic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
)

// plain is the answer to GET /a of an index that another program made.
func plain(aliases, block string) answer {
	return answer{200, fmt.Sprintf(`{"a":{"aliases":{%s},"mappings":{},"settings":{"index.creation_date":"0","index.blocks.write":%s}}}`, aliases, block)}
}

// TestAdoptUndone: an Adopt that fails restores the writes that it took, or that an interrupted one before it has taken, but not a block
// that somebody set.
func TestAdoptUndone(t *testing.T) {
	const mark = `"a--adopting":{}`
	absent, failed := refused(404, "index_not_found_exception", "no such index"), answer{500, ``}
	for name, c := range map[string]struct {
		before, after answer
		marks         bool   // by this Adopt
		restored      string // the write block in the end
	}{
		"the first":                {plain("", "null"), plain(mark, `"true"`), true, "null"},
		"after an interrupted one": {plain(mark, `"true"`), plain(mark, `"true"`), false, "null"},
		"of a blocked index":       {plain("", `"true"`), plain("", `"true"`), false, `"true"`},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"GET /a ", "GET /a-19700101000000 "}
			answers := []answer{c.before, absent}
			if c.marks {
				want, answers = append(want, "PUT /a/_aliases/a--adopting "), append(answers, answer{200, done})
			}
			want = append(want, `PUT /a/_settings {"index.blocks.write":"true"}`, "PUT /a/_clone/a-19700101000000 ",
				"GET /a ", "GET /a-19700101000000 ", `PUT /a/_settings {"index.blocks.write":`+c.restored+`}`)
			answers = append(answers, answer{200, done}, failed, c.after, absent, answer{200, done})
			if c.restored == "null" {
				want, answers = append(want, "DELETE /a/_aliases/a--adopting "), append(answers, answer{200, done})
			}
			x, s := play(t, answers...)
			if _, err := x.Adopt(t.Context(), "a"); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("Adopt: %v", err)
			}
			if !slices.EqualFunc(s.asked, want, strings.HasPrefix) {
				t.Errorf("asked %q, want %q", s.asked, want)
			}
		})
	}
}
