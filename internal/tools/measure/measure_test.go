package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fixture(t *testing.T) *module {
	t.Helper()
	m, err := load("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPath follows a letter: into no guard, no failure and nothing optional, through a deferred call, functions that are called back by
// what is followed and by what is not, another package, and the one type of an interface; not where the letter does not go.
func TestPath(t *testing.T) {
	m := fixture(t)
	letter := path{name: "letter", starts: []start{{"post.office.handle", "l"}}, scope: []string{"post", "sorting"}}
	for _, test := range []struct {
		name   string
		change func(*path)
		want   string
	}{
		{name: "all", want: "office desk other office desk other office other office desk office desk other office other office sorting office other office desk other"},
		{
			name: "a scope", change: func(p *path) { p.scope = p.scope[:1] },
			want: "office desk other office desk other office other office desk office desk other office other office other office desk other",
		},
		{
			name: "without a function", change: func(p *path) { p.without = []string{"post.check"} },
			want: "office other office desk office other office sorting office other office desk other",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := letter
			if test.change != nil {
				test.change(&p)
			}
			entries, err := m.entries(p)
			if err != nil {
				t.Fatal(err)
			}
			for i, file := range entries {
				entries[i] = strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".go")
			}
			if diff := cmp.Diff(test.want, strings.Join(entries, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPathNamesWhatExists has paths whose functions are gone fail.
func TestPathNamesWhatExists(t *testing.T) {
	m := fixture(t)
	for _, p := range []path{
		{starts: []start{{"post.office.handle", "gone"}}},
		{starts: []start{{"post.gone", "l"}}},
		{starts: []start{{"post.office.handle", "l"}}, without: []string{"post.gone"}},
	} {
		if _, err := m.entries(p); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestReach counts the names of a type and of what it embeds; a hidden name counts once.
func TestReach(t *testing.T) {
	want := map[string]int{
		"post.base": 3, "post.letter": 4, "post.printer": 1,
		"sorting.Stamper": 1, "sorting.Franker": 1, "sorting.Sealer": 1,
		"post.office": 7, // base, hidden, printer, handle and print; bags and store of base
		"post.press":  8, // office, and its own print for office's
	}
	if diff := cmp.Diff(want, fixture(t).reaches(0)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"post.office": 7, "post.press": 8}, fixture(t).reaches(4)); diff != "" {
		t.Error(diff)
	}
}

// TestAlike finds the interfaces with the same methods, whatever their parameters are called.
func TestAlike(t *testing.T) {
	if diff := cmp.Diff([][]string{{"sorting.Franker", "sorting.Stamper"}}, fixture(t).alike()); diff != "" {
		t.Error(diff)
	}
}

// TestCeilings has a ceiling fall and never rise.
func TestCeilings(t *testing.T) {
	ceilings, err := parse("# a comment\n\nreach a.b 50\nreach a.gone 60\npath page 20\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		values table
		want   []string
	}{
		{"as stored", table{"reach a.b": 50, "reach a.gone": 60, "path page": 20}, nil},
		{"risen", table{"reach a.b": 51, "reach a.gone": 60, "path page": 21}, []string{"path page: 21, above its ceiling of 20", "reach a.b: 51, above its ceiling of 50"}},
		{"new", table{"reach a.b": 50, "reach a.gone": 60, "reach a.c": 36, "path page": 20}, []string{"reach a.c: 36, above its ceiling of 35"}},
		{"fallen", table{"reach a.b": 50, "path page": 19}, []string{
			"path page: the ceiling of 20 can fall: go run ./internal/tools/measure -lower",
			"reach a.gone: the ceiling of 60 can fall: go run ./internal/tools/measure -lower",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			if err := ceilings.hold(test.values); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
	low := ceilings.lowered(table{"reach a.b": 51, "path page": 19, "reach a.c": 36})
	if diff := cmp.Diff(table{"reach a.b": 50, "path page": 19}, low); diff != "" {
		t.Error(diff)
	}
	again, err := parse(low.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(low, again); diff != "" {
		t.Error(diff)
	}
	if _, err := parse("reach a.b many"); err == nil {
		t.Error("a row without a number is read")
	}
}
