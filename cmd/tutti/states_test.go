package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// section returns the part of deploy/docs/states.md below a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "states.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("states.md has no %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// drawn returns the states of the diagram in a section, and those of them that lead to the end, sorted.
func drawn(text string) (states, final []string) {
	for _, arrow := range regexp.MustCompile(`(?m)^    (\S+) --> ([^\s:]+)`).FindAllStringSubmatch(text, -1) {
		for _, state := range arrow[1:] {
			if state != "[*]" {
				states = append(states, state)
			}
		}
		if arrow[2] == "[*]" {
			final = append(final, arrow[1])
		}
	}
	return sorted(states), sorted(final)
}

// firstColumn returns what stands in backquotes in the first column of the table in a section, row by row.
func firstColumn(text string) []string {
	var found []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			found = append(found, name[1])
		}
	}
	return found
}

func sorted(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

// constants returns the values of the text constants of a file of internal/core whose names begin with prefix, sorted.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "internal", "core", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) != 1 {
			return true
		}
		if literal, is := spec.Values[0].(*ast.BasicLit); is && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return sorted(values)
}

// TestStatesOfTheGuide: the states that states.md draws, and its tables, are those of the code.
func TestStatesOfTheGuide(t *testing.T) {
	t.Parallel()
	var jobs, ended []string
	for _, s := range core.JobStates() {
		jobs = append(jobs, string(s))
		if s.Final() {
			ended = append(ended, string(s))
		}
	}
	var outcomes []string
	for o := core.Outcome(0); o.String() != "unknown"; o++ {
		outcomes = append(outcomes, o.String())
	}
	job, request, letter := section(t, "A job, and an organization's run"), section(t, "A request"), section(t, "A dead letter")
	states, final := drawn(job)
	requests, _ := drawn(request)
	for what, diff := range map[string]string{
		"states of a job":        cmp.Diff(sorted(jobs), states),
		"constants of JobState":  cmp.Diff(constants(t, "job.go", "Job"), sorted(append(constants(t, "job.go", "JobError"), jobs...))),
		"final states of a job":  cmp.Diff(sorted(ended), final),
		"table of states":        cmp.Diff(sorted(jobs), sorted(firstColumn(job))),
		"states of a request":    cmp.Diff(sorted(append([]string{"pending", "in_flight", "replaced", "dead_letter"}, outcomes...)), requests),
		"table of outcomes":      cmp.Diff(sorted(outcomes), sorted(firstColumn(request))),
		"reasons of dead letter": cmp.Diff(constants(t, "deadletter.go", "Reason"), sorted(firstColumn(letter))),
	} {
		if diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// TestLayersOfTheGuide: the layers of a write that states.md lists are those of internal/app/storage/index.go, in their order: from the first
// argument of bulk.New each layer is made of the next one.
func TestLayersOfTheGuide(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "internal", "app", "storage", "index.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	assigned := map[string][]*ast.CallExpr{} // by the field that is set
	ast.Inspect(file, func(n ast.Node) bool {
		set, is := n.(*ast.AssignStmt)
		if !is {
			return true
		}
		field, isField := set.Lhs[0].(*ast.SelectorExpr)
		call, isCall := set.Rhs[0].(*ast.CallExpr)
		if isField && isCall {
			assigned[field.Sel.Name] = append(assigned[field.Sel.Name], call)
		}
		return true
	})
	var wired []string
	for calls := assigned["Writer"]; len(calls) > 0; {
		for _, call := range calls {
			made := call.Fun.(*ast.SelectorExpr)
			wired = append(wired, made.X.(*ast.Ident).Name+"."+made.Sel.Name)
		}
		switch next := calls[0].Args[0].(type) {
		case *ast.CallExpr:
			calls = []*ast.CallExpr{next}
		case *ast.SelectorExpr:
			calls = assigned[next.Sel.Name]
		default:
			calls = nil
		}
	}
	if diff := cmp.Diff(wired, firstColumn(section(t, "The layers of a write"))); diff != "" {
		t.Errorf("the layers in the code and in states.md: %s", diff)
	}
}
