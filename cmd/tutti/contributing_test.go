package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestContributingNamesPackages: the table of folders in CONTRIBUTING.md names every package directly below internal, and each name below
// internal anywhere in it is a folder or a file. Each of these packages has a doc.go, which says what it owns.
func TestContributingNamesPackages(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, ".github", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n| folder | content |\n")
	if !found {
		t.Fatal("CONTRIBUTING.md has no table of folders")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	folders, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.IsDir() && !strings.Contains(table, "`internal/"+folder.Name()+"`") {
			t.Errorf("the table of folders does not name internal/%s", folder.Name())
		}
		if _, err := os.Stat(filepath.Join(root, "internal", folder.Name(), "doc.go")); err != nil {
			t.Errorf("nothing says what internal/%s owns: %v", folder.Name(), err)
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:cmd/tutti/)?internal/[A-Za-z0-9_./-]*[A-Za-z0-9]`).FindAllString(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", name, err)
		}
	}
	for _, page := range []string{"states.md", "decisions/README.md"} {
		if !strings.Contains(string(text), "(../deploy/docs/"+page+")") {
			t.Errorf("CONTRIBUTING.md does not link %s", page)
		}
	}
}

// TestFindingsAreListed: the table of findings has a row for each script, and no other.
func TestFindingsAreListed(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "findings")
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(text, -1) {
		listed = append(listed, filepath.Join(folder, string(row[1])))
	}
	scripts, err := filepath.Glob(filepath.Join(folder, "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	if !slices.Equal(listed, scripts) {
		t.Errorf("the table has %q, the folder %q", listed, scripts)
	}
}

// TestPackageComments: each package has one comment, with its name, that says what it is for; one of the product with code and no tests beside it says
// where they are.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	files := map[string][]string{} // by folder
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tutti-data"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".go"):
			files[filepath.Dir(file)] = append(files[filepath.Dir(file)], file)
		}
		return nil
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d folders with code: %v", len(files), err)
	}
	tested := func(folder string) bool {
		return slices.ContainsFunc(files[folder], func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	}
	elsewhere := regexp.MustCompile(`\nIts tests are in (\S+?)(?: and (\S+?))?\.\n`)
	for folder, all := range files {
		var comments []string
		name, hasCode := "", false
		for _, file := range all {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			name, hasCode = parsed.Name.Name, hasCode || filepath.Base(file) != "doc.go"
			if parsed.Doc != nil {
				comments = append(comments, parsed.Doc.Text())
			}
		}
		begins := "Package " + name + " "
		if name == "main" {
			begins = "Command " + filepath.Base(folder) + " "
		}
		if name != "" && (len(comments) != 1 || !strings.HasPrefix(comments[0], begins)) {
			t.Errorf("%s has the comments %q, want one that begins with %q", folder, comments, begins)
			continue
		}
		if !hasCode || tested(folder) || strings.Contains(folder, "internal/tools") {
			continue
		}
		found := elsewhere.FindStringSubmatch(comments[0])
		if found == nil {
			t.Errorf("%s has no tests, and does not say where they are", folder)
			continue
		}
		for _, other := range found[1:] {
			if other != "" && !tested(filepath.Join(root, other)) {
				t.Errorf("%s says that its tests are in %s, which has none", folder, other)
			}
		}
	}
}
