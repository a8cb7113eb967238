package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// headings returns the headings of a page of deploy/docs: level 2, and those of level 3 below them after " / ".
func headings(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	section := ""
	for _, h := range regexp.MustCompile(`(?m)^(##|###) (.*)$`).FindAllStringSubmatch(guide(t, page), -1) {
		if h[1] == "##" {
			section = h[2]
			all = append(all, section)
			continue
		}
		all = append(all, section+" / "+h[2])
	}
	return all
}

// guide returns a page of deploy/docs.
func guide(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the rows of the tables of promises.md by their first cell, such as P1.
func rows(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([PT]\d+) \|(.*)$`).FindAllStringSubmatch(guide(t, "promises"), -1) {
		if _, twice := all[row[1]]; twice {
			t.Errorf("promises.md has two rows %s", row[1])
		}
		all[row[1]] = row[2]
	}
	return all
}

// cited are the pages as comments name them, with what may follow the name.
var (
	citation   = regexp.MustCompile(`\b(CONTRACT|DESIGN|RELIABILITY)\b`)
	contracted = regexp.MustCompile(`^(?:'s)? sections? (\d+(?:(?:, | and | to )\d+)*)(?:'s)?(?:, (\w[^();:.,]*)\))?`)
	designed   = regexp.MustCompile(`^, ([A-Z][^);:.,]*)`)
	promised   = regexp.MustCompile(`^, ([PT]\d+)(?:(?: to | and |, )([PT]\d+))*`)
	further    = regexp.MustCompile(`\(sections? (\d+)\)`)
)

// cites holds what comments may cite.
type cites struct {
	contract, design []string
	promises         map[string]string
}

// wrong returns the citations of a comment that lead to nothing.
func (c cites) wrong(comment string) []string {
	comment = strings.Join(strings.Fields(comment), " ")
	var found []string
	places := citation.FindAllStringIndex(comment, -1)
	for _, at := range places {
		name, after := comment[at[0]:at[1]], comment[at[1]:]
		resolves := false
		switch name {
		case "CONTRACT":
			if m := contracted.FindStringSubmatch(after); m != nil {
				resolves = c.sections(regexp.MustCompile(`\d+`).FindAllString(m[1], -1), m[2])
			}
		case "DESIGN":
			if m := designed.FindStringSubmatch(after); m != nil {
				resolves = slices.Contains(c.design, m[1])
			}
		case "RELIABILITY":
			if m := promised.FindString(after); m != "" {
				resolves = true
				for _, row := range regexp.MustCompile(`[PT]\d+`).FindAllString(m, -1) {
					resolves = resolves && c.promises[row] != ""
				}
			}
		}
		if !resolves {
			found = append(found, name+after[:min(len(after), 60)])
		}
	}
	if len(places) > 0 {
		for _, m := range further.FindAllStringSubmatch(comment, -1) {
			if !c.sections(m[1:], "") {
				found = append(found, m[0])
			}
		}
	}
	return found
}

// sections reports whether the contract has all sections, and the last of them the part that is named after it, "" for none.
func (c cites) sections(numbers []string, part string) bool {
	for i, n := range numbers {
		at := slices.IndexFunc(c.contract, func(h string) bool { return strings.HasPrefix(h, n+". ") && !strings.Contains(h, " / ") })
		if at < 0 {
			return false
		}
		if i == len(numbers)-1 && part != "" && !slices.ContainsFunc(c.contract, func(h string) bool {
			return strings.EqualFold(h, c.contract[at]+" / "+part)
		}) {
			return false
		}
	}
	return true
}

// comments returns the comments of a file: groups of a Go file, else lines that begin with #, those that follow each other together.
func comments(t *testing.T, file string, text []byte) []string {
	t.Helper()
	var all []string
	if filepath.Ext(file) == ".go" {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range parsed.Comments {
			all = append(all, group.Text())
		}
		return all
	}
	for _, group := range regexp.MustCompile(`(?m)(?:^[\t ]*#.*\n?)+|[\t ]#.*$`).FindAllString(string(text), -1) {
		all = append(all, strings.ReplaceAll(group, "#", " "))
	}
	return all
}

// sources calls visit for each file of the repository whose comments may cite: Go, YAML, scripts and the Makefile.
func sources(t *testing.T, visit func(file string, text []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "dist", "node_modules", "testdata", "tutti-data", "vendor"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains([]string{".go", ".sh", ".yaml", ".yml", ".py", ""}, filepath.Ext(file)) {
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil {
			visit(file, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCites: every comment that cites the contract, the design or the promises names a section, a heading or a row that exists.
func TestCites(t *testing.T) {
	t.Parallel()
	c := cites{contract: headings(t, "contract"), design: headings(t, "design"), promises: rows(t)}
	cited := 0
	sources(t, func(file string, text []byte) {
		if !citation.Match(text) || strings.HasSuffix(file, "cites_test.go") {
			return
		}
		for _, comment := range comments(t, file, text) {
			cited += len(citation.FindAllString(comment, -1))
			for _, wrong := range c.wrong(comment) {
				t.Errorf("%s cites %q, which is not in deploy/docs", file, wrong)
			}
		}
	})
	if cited < 100 {
		t.Errorf("%d citations found, the test reads the comments wrongly", cited)
	}
}

// TestWrongCites: TestCites finds what it should.
func TestWrongCites(t *testing.T) {
	t.Parallel()
	c := cites{contract: headings(t, "contract"), design: headings(t, "design"), promises: rows(t)}
	for comment, want := range map[string]int{
		"A (CONTRACT section 1), B (CONTRACT\nsections 6 and 7), and of C (section 8).": 0,
		"A (CONTRACT section 1, Document) and CONTRACT section 9's defaults.":           0,
		"A (CONTRACT section 11).":                                1,
		"A (CONTRACT sections 1 and 12).":                         1,
		"A (CONTRACT section 1) and B (section 12).":              1,
		"A (CONTRACT section 1, Anything).":                       1,
		"A (CONTRACT).":                                           1,
		"A (DESIGN, Runs) and (DESIGN,\nBodies are short-lived).": 0,
		"A (DESIGN, Anything) of DESIGN.":                         2,
		"A (RELIABILITY, P1 to P6; RELIABILITY, T14).":            0,
		"A (RELIABILITY, P99), T1 of RELIABILITY.":                2,
	} {
		if got := c.wrong(comment); len(got) != want {
			t.Errorf("%q: %d wrong citations %q, want %d", comment, len(got), got, want)
		}
	}
}

// TestPromisesNameTests: every promise names trials, and every trial the tests or targets of make that exist.
func TestPromisesNameTests(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{} // by folder
	named, tried := map[string]bool{}, map[string]bool{}
	all := rows(t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id[0] == 'P' {
			trials := regexp.MustCompile(`T\d+`).FindAllString(all[id], -1)
			if len(trials) == 0 {
				t.Errorf("%s names no trial", id)
			}
			for _, trial := range trials {
				named[trial] = true
				if all[trial] == "" {
					t.Errorf("%s names %s, which does not exist", id, trial)
				}
			}
			continue
		}
		folder := ""
		for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(all[id], -1) {
			name := span[1]
			switch target, isTarget := strings.CutPrefix(name, "make "); {
			case isTarget:
				tried[id] = true
				if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
					t.Errorf("%s names `make %s`, which does not exist", id, target)
				}
			case strings.HasPrefix(name, "Test"):
				tried[id] = true
				if tests[folder] == nil {
					tests[folder] = testsOf(t, folder)
				}
				if !slices.Contains(tests[folder], name) {
					t.Errorf("%s names %s of %q, which does not exist", id, name, folder)
				}
			default:
				folder = name
			}
		}
		if !tried[id] {
			t.Errorf("%s names no test", id)
		}
	}
	if len(all) < 30 || len(named) < 10 {
		t.Errorf("%d rows are read, of which the promises name %d", len(all), len(named))
	}
}

// testsOf returns the tests of a folder, whatever their build tags.
func testsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, isFunc := d.(*ast.FuncDecl); isFunc && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
