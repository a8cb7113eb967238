package app_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// untestedFile lists the advice of the product's errors and findings that no test mentions: a line for each, with its package.
const untestedFile = "testdata/untested_advice.txt"

// TestAdviceIsTested finds every hint in the product's source: the value of a member, a variable or a parameter hint, or what a function whose
// name ends in Hint or whose result is hint returns. A test must mention each, apart from those of untestedFile, to which nothing may be
// added; one that a test mentions leaves it.
func TestAdviceIsTested(t *testing.T) {
	root := filepath.Join("..", "..")
	sources := advice{hints: map[string][]string{}}
	var tests strings.Builder
	for _, folder := range []string{"cmd", "consumers", "http", "ingest", "internal", "schemas"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			golden := strings.Contains(path, "testdata") && filepath.Base(path) != filepath.Base(untestedFile)
			switch {
			case err != nil || d.IsDir():
				if d != nil && path == filepath.Join(root, "internal", "tools") {
					return fs.SkipDir
				}
				return err
			case golden || strings.HasSuffix(path, "_test.go"):
				text, err := os.ReadFile(path)
				tests.WriteString(strings.ReplaceAll(strings.ReplaceAll(string(text), `\"`, `"`), "\" +\n", ""))
				return err
			case strings.HasSuffix(path, ".go"):
				return sources.parse(root, path)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(sources.files) < 500 {
		t.Fatalf("%d files of the product were found", len(sources.files))
	}
	for _, f := range sources.files {
		sources.find(f)
	}
	if len(sources.hints) < 300 {
		t.Fatalf("%d hints were found", len(sources.hints))
	}
	var untested []string
	for text, packages := range sources.hints {
		if !strings.Contains(tests.String(), longest(text)) {
			untested = append(untested, fmt.Sprintf("%s\t%q", strings.Join(packages, " "), text))
		}
	}
	slices.Sort(untested)
	t.Logf("%d of %d hints are in no test", len(untested), len(sources.hints))
	got := strings.Join(untested, "\n") + "\n"
	if *update {
		if err := os.WriteFile(untestedFile, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(untestedFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("follow each new advice in a test; remove what a test follows from %s with -update (-want +got):\n%s", untestedFile, diff)
	}
}

var verb = regexp.MustCompile(`%[-+#.*0-9]*[a-z]`)

// longest returns the longest part of a format without verbs.
func longest(format string) string {
	return slices.MaxFunc(verb.Split(format, -1), func(a, b string) int { return len(a) - len(b) })
}

// advice collects the hints of the product's source.
type advice struct {
	files []file
	// at has the position of the parameter hint of functions, by package and name.
	at map[string]int
	// hints has the packages of each text.
	hints map[string][]string
}

type file struct {
	folder string
	*ast.File
}

func isHint(name string) bool {
	return strings.EqualFold(name, "hint") || strings.HasSuffix(name, "Hint")
}

func (a *advice) parse(root, path string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder, err := filepath.Rel(root, filepath.Dir(path))
	a.files = append(a.files, file{filepath.ToSlash(folder), parsed})
	if a.at == nil {
		a.at = map[string]int{}
	}
	note := func(name string, params *ast.FieldList) {
		if i := slices.Index(names(params), "hint"); i >= 0 {
			a.at[filepath.Base(folder)+"."+name] = i
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			note(n.Name.Name, n.Type.Params)
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if function, is := value.(*ast.FuncLit); is {
					note(nameOf(n.Lhs[i]), function.Type.Params)
				}
			}
		}
		return true
	})
	return err
}

// names returns the names of parameters or results, "" for one without.
func names(list *ast.FieldList) (all []string) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		if len(f.Names) == 0 {
			all = append(all, "")
		}
		for _, name := range f.Names {
			all = append(all, name.Name)
		}
	}
	return all
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// find collects the hints of a file.
func (a *advice) find(f file) {
	var walk func(n ast.Node, returned int)
	walk = func(n ast.Node, returned int) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					walk(n.Body, returnedHint(n.Name.Name, n.Type.Results))
				}
				return false
			case *ast.FuncLit:
				walk(n.Body, returnedHint("", n.Type.Results))
				return false
			case *ast.ReturnStmt:
				if returned >= 0 && returned < len(n.Results) {
					a.add(f.folder, n.Results[returned])
				}
			case *ast.KeyValueExpr:
				if isHint(nameOf(n.Key)) {
					a.add(f.folder, n.Value)
				}
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if isHint(nameOf(to)) && i < len(n.Rhs) {
						a.add(f.folder, n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if isHint(name.Name) && i < len(n.Values) {
						a.add(f.folder, n.Values[i])
					}
				}
			case *ast.CallExpr:
				of := filepath.Base(f.folder)
				if s, is := n.Fun.(*ast.SelectorExpr); is && ast.IsExported(s.Sel.Name) {
					of = nameOf(s.X)
				}
				if i, has := a.at[of+"."+nameOf(n.Fun)]; has && i < len(n.Args) {
					a.add(f.folder, n.Args[i])
				}
			}
			return true
		})
	}
	walk(f.File, -1)
}

// returnedHint returns which result of a function is a hint, -1 for none.
func returnedHint(name string, results *ast.FieldList) int {
	if isHint(name) {
		return 0
	}
	return slices.Index(names(results), "hint")
}

// add collects the longest text in an expression, unless it is too short to advise something.
func (a *advice) add(folder string, e ast.Expr) {
	text := ""
	ast.Inspect(e, func(n ast.Node) bool {
		if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
			if s, err := strconv.Unquote(l.Value); err == nil && len(longest(s)) > len(longest(text)) {
				text = s
			}
		}
		return true
	})
	if len(longest(text)) > 10 && !slices.Contains(a.hints[text], folder) {
		a.hints[text] = append(a.hints[text], folder)
		slices.Sort(a.hints[text])
	}
}
