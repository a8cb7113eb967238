package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
)

// TestExclusionErrorsNameTheirKey: a misspelt rule stops the start.
func TestExclusionErrorsNameTheirKey(t *testing.T) {
	t.Parallel()
	const at = "repositories[0].exclude"
	runFaults(t, map[string]errorCase{
		"singular":          {repository("exclude: {donor: [DO1]}"), "", []string{at + ".donor: unknown key; the nearest valid key is " + at + ".donors (line 1)"}},
		"name of Maestro":   {repository("exclude: {studyId: [A]}"), "", []string{at + ".studyId: unknown key; the nearest valid key is " + at + "."}},
		"misspelt":          {repository("exclude: {organisations: [A]}"), "", []string{at + ".organisations: unknown key; the nearest valid key is " + at + ".organizations"}},
		"misspelt itself":   {repository("excludes: {donors: [A]}"), "", []string{"repositories[0].excludes: unknown key; the nearest valid key is " + at}},
		"misplaced":         {least + "\nexclude: {donors: [A]}", "", []string{"exclude: unknown key"}},
		"byId":              {repository("exclude: {byId: {donors: [A]}}"), "", []string{at + ".byId: unknown key"}},
		"a list":            {repository("exclude: [DO1]"), "", []string{at + ": must be an object, not a list (line 1)"}},
		"a text":            {repository("exclude: {donors: DO1}"), "", []string{at + ".donors: must be a list of texts, not a single value (line 1)"}},
		"an object":         {repository("exclude: {donors: [{id: DO1}]}"), "", []string{at + ".donors[0]: must be a text, not an object (line 1)"}},
		"a number":          {repository("exclude: {donors: [DO1, 7]}"), "quotes", []string{at + ".donors[1]: must be a text, not 7 (line 1)"}},
		"empty":             {repository("exclude: {donors: [DO1, '']}"), "", []string{at + ".donors[1]: is empty (line 1)"}},
		"nothing":           {repository("exclude: {donors: [DO1, ~]}"), "", []string{at + ".donors[1]: must be a text, not nothing (line 1)"}},
		"twice":             {repository("exclude: {donors: [DO1, DO2, DO1]}"), "remove one", []string{at + `.donors[2]: "DO1" is also ` + at + ".donors[0] (line 1)"}},
		"the list twice":    {repository("exclude: {donors: [DO1], donors: [DO2]}"), "remove one", []string{at + ".donors: the key is set twice (line 1)"}},
		"with a space":      {repository("exclude: {donors: ['DO1 ']}"), "", []string{at + `.donors[0]: "DO1 " starts or ends with white space (line 1)`}},
		"records of a Song": {repository("exclude: {records: [R1]}"), "use organizations, analyses, files, donors, specimens, samples", []string{at + ".records: does not apply to type song (line 1)"}},
		"donors of a Lyric": {lyricFile("lyric: {categoryId: 1}, exclude: {donors: [D]}"), "use organizations, records", []string{at + ".donors: does not apply to type lyric (line 1)"}},
		"one in two lists":  {repository("exclude: {donors: [X], samples: [X]}"), "", nil},
		"of a Lyric":        {lyricFile("lyric: {categoryId: 1}, exclude: {organizations: [O], records: [R]}"), "", nil},
		"built-in":          {"repositories: [{code: a, type: local, indexName: a, exclude: {analyses: [A], files: [F]}}]", "", nil},
	})
}

// TestExclusionsOfTheEnvironment: a variable holds a list, or one id of it.
func TestExclusionsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	c := parse(t, least, "TUTTI_REPOSITORIES_0_EXCLUDE_DONORS=DO1, 7", "TUTTI_REPOSITORIES_0_EXCLUDE_ORGANIZATIONS_0=S1")
	want := map[string][]string{"donors": {"DO1", "7"}, "organizations": {"S1"}}
	if diff := cmp.Diff(want, c.Repositories[0].Exclusions()); diff != "" {
		t.Error(diff)
	}
	_, err := config.Parse([]byte(least), []string{"TUTTI_REPOSITORIES_0_EXCLUDE_DONOR=DO1"})
	wantErrors(t, err, "TUTTI_REPOSITORIES_0_EXCLUDE_DONOR: unknown variable; the nearest valid one is TUTTI_REPOSITORIES_0_EXCLUDE_DONORS")
}
