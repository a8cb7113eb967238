package elastic_test

import (
	"errors"
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
			if _, _, err := x.Adopt(t.Context(), "a"); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("Adopt: %v", err)
			}
			if !slices.EqualFunc(s.asked, want, strings.HasPrefix) {
				t.Errorf("asked %q, want %q", s.asked, want)
			}
		})
	}
}

// TestAdoptUnsuitable: an index that does not return its documents is not adopted, and stays as it is.
func TestAdoptUnsuitable(t *testing.T) {
	for settings, mappings := range map[string]string{`"index.mode":"logsdb"`: `{}`, `"index.mode":"standard"`: `{"_source":{"enabled":false}}`} {
		x, s := play(t, answer{200, `{"a":{"aliases":{},"settings":{"index.creation_date":"1",` + settings + `},"mappings":` + mappings + `}}`})
		if _, _, err := x.Adopt(t.Context(), "a"); !errors.Is(err, core.ErrIndexUnsuitable) || len(s.asked) != 1 {
			t.Errorf("%s, %s: %v after %q", settings, mappings, err, s.asked)
		}
	}
}

// TestAdoptSeveral: of several indices the alias is left to the oldest that Ensure has created, or to the oldest, in one request.
func TestAdoptSeveral(t *testing.T) {
	one := func(name, created string) string {
		return fmt.Sprintf(`%q:{"aliases":{"a":{}},"settings":{"index.creation_date":%q}}`, name, created)
	}
	for name, c := range map[string]struct{ found, kept, released string }{
		"rolled over":           {one("a-20260102030406", "2") + "," + one("a-20260102030405", "1"), "a-20260102030405", "a-20260102030406"},
		"of others, and older":  {one("theirs", "1") + "," + one("a-20260102030405", "2"), "a-20260102030405", "theirs"},
		"of others, and newer":  {one("a-20260102030405", "1") + "," + one("theirs", "2"), "a-20260102030405", "theirs"},
		"none that tutti named": {one("logs-000002", "2") + "," + one("logs-000001", "1"), "logs-000001", "logs-000002"},
	} {
		t.Run(name, func(t *testing.T) {
			x, s := play(t, answer{200, "{" + c.found + "}"}, answer{200, done})
			kept, released, err := x.Adopt(t.Context(), "a")
			if err != nil || kept != c.kept || !slices.Equal(released, []string{c.released}) {
				t.Errorf("%q, %q, %v", kept, released, err)
			}
			want := fmt.Sprintf(`POST /_aliases {"actions":[{"remove":{"alias":"a","index":%q,"must_exist":true}},{"add":{"alias":"a","index":%q,"is_write_index":true}}]}`,
				c.released, c.kept)
			if len(s.asked) != 2 || s.asked[1] != want {
				t.Errorf("asked %q, want %q", s.asked, want)
			}
		})
	}
}
