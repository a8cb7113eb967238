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
)

// TestAdviceIsTested finds every hint in the product's source: the value of a member, named or not, of a variable or a parameter hint, or what a function whose
// name ends in Hint or whose result is hint returns. A test must mention each.
func TestAdviceIsTested(t *testing.T) {
	root := filepath.Join("..", "..")
	sources := advice{hints: map[string][]string{}}
	var tests strings.Builder
	for _, folder := range []string{"cmd", "consumers", "http", "ingest", "internal", "schemas"} {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || d.IsDir():
				if d != nil && path == filepath.Join(root, "internal", "tools") {
					return fs.SkipDir
				}
				return err
			case strings.Contains(path, "testdata") || strings.HasSuffix(path, "_test.go"):
				text, err := os.ReadFile(path)
				tests.WriteString(strings.ReplaceAll(continued.ReplaceAllString(string(text), ""), `\"`, `"`))
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
	if len(untested) > 0 {
		t.Errorf("follow each advice in a test; of %d hints these are in none:\n%s", len(sources.hints), strings.Join(untested, "\n"))
	}
}

// continued matches what is between the parts of a literal that continues on the next line.
var continued = regexp.MustCompile("\" \\+\n\\s*\"")

var verb = regexp.MustCompile(`%[-+#.*0-9]*[a-z]`)

// longest returns the longest part of a format without verbs.
func longest(format string) string {
	return slices.MaxFunc(verb.Split(format, -1), func(a, b string) int { return len(a) - len(b) })
}

// advice collects the hints of the product's source.
type advice struct {
	files []file
	// at has the position of the parameter hint of functions, and of the member Hint of structs, by package and name.
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
		if i := slices.IndexFunc(names(params), func(name string) bool { return strings.EqualFold(name, "hint") }); i >= 0 {
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
		case *ast.TypeSpec:
			if s, is := n.Type.(*ast.StructType); is {
				note(n.Name.Name, s.Fields)
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
				a.addAt(f.folder, n.Fun, n.Args)
			case *ast.CompositeLit:
				if len(n.Elts) > 0 {
					if _, keyed := n.Elts[0].(*ast.KeyValueExpr); !keyed {
						a.addAt(f.folder, n.Type, n.Elts)
					}
				}
			}
			return true
		})
	}
	walk(f.File, -1)
}

// addAt adds the hint among the arguments of a function, or the members of a struct.
func (a *advice) addAt(folder string, of ast.Expr, values []ast.Expr) {
	home := filepath.Base(folder)
	if s, is := of.(*ast.SelectorExpr); is && ast.IsExported(s.Sel.Name) {
		home = nameOf(s.X)
	}
	if i, has := a.at[home+"."+nameOf(of)]; has && i < len(values) {
		a.add(folder, values[i])
	}
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
	advises := len(longest(text)) > 10 && strings.Contains(text, " ") // the path of a member has no spaces
	if advises && !slices.Contains(a.hints[text], folder) {
		a.hints[text] = append(a.hints[text], folder)
		slices.Sort(a.hints[text])
	}
}
