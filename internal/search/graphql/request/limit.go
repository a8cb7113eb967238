package request

import (
	"fmt"
	"math"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// Limits of a query, checked before validation. All are far above what clients send; a query within them is validated in well
// under a second.
const (
	maxQueryBytes = 1 << 20
	maxTokens     = 100_000
	maxOperations = 50
	maxFragments  = 200
	maxVariables  = 500
	// maxDepth is the default and the upper limit of the nesting depth.
	maxDepth = 100
	// maxCost limits the fields of an operation with its fragments expanded.
	maxCost = 20_000
	// maxVisits limits the fields that validation visits: it walks everything reachable from each definition.
	maxVisits = 100_000
)

// measure is the size of an operation or a fragment with its fragments expanded.
type measure struct {
	fields, aliases, depth int
}

// meter measures the parts of a document. Each fragment is measured once, so that nested fragments cost no more than their text.
type meter struct {
	fragments map[string]*ast.FragmentDefinition
	measured  map[*ast.FragmentDefinition]measure
	// inProgress are the fragments being measured: a recursive spread counts 0, and validation rejects it.
	inProgress map[*ast.FragmentDefinition]bool
}

func newMeter(doc *ast.QueryDocument) *meter {
	m := &meter{
		fragments:  make(map[string]*ast.FragmentDefinition, len(doc.Fragments)),
		measured:   make(map[*ast.FragmentDefinition]measure, len(doc.Fragments)),
		inProgress: map[*ast.FragmentDefinition]bool{},
	}
	for _, f := range doc.Fragments {
		if m.fragments[f.Name] == nil {
			m.fragments[f.Name] = f
		}
	}
	return m
}

// set measures a selection set. Introspection does not count towards the depth: tools need it, and it is bounded by itself.
func (m *meter) set(set ast.SelectionSet) measure {
	var all measure
	for _, selection := range set {
		var one measure
		switch s := selection.(type) {
		case *ast.Field:
			one = m.set(s.SelectionSet)
			one.fields++
			one.depth++
			if s.Alias != s.Name {
				one.aliases++
			}
			if strings.HasPrefix(s.Name, "__") {
				one.depth = 0
			}
		case *ast.InlineFragment:
			one = m.set(s.SelectionSet)
		case *ast.FragmentSpread:
			one = m.fragment(m.fragments[s.Name])
		}
		all.fields = saturate(all.fields + one.fields)
		all.aliases = saturate(all.aliases + one.aliases)
		all.depth = max(all.depth, one.depth)
	}
	return all
}

func (m *meter) fragment(f *ast.FragmentDefinition) measure {
	if f == nil || m.inProgress[f] {
		return measure{}
	}
	if known, is := m.measured[f]; is {
		return known
	}
	m.inProgress[f] = true
	one := m.set(f.SelectionSet)
	delete(m.inProgress, f)
	m.measured[f] = one
	return one
}

// saturate limits a sum to math.MaxInt32, so that sums do not overflow.
func saturate(n int) int { return min(n, math.MaxInt32) }

// visits counts the fields that a walk from each definition visits if it enters each fragment once.
func (m *meter) visits(doc *ast.QueryDocument) int {
	all := 0
	for _, op := range doc.Operations {
		all = saturate(all + m.reach(op.SelectionSet, map[*ast.FragmentDefinition]bool{}))
	}
	for _, f := range doc.Fragments {
		all = saturate(all + m.reach(f.SelectionSet, map[*ast.FragmentDefinition]bool{f: true}))
		if all > maxVisits {
			break
		}
	}
	return all
}

func (m *meter) reach(set ast.SelectionSet, seen map[*ast.FragmentDefinition]bool) int {
	n := 0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			n += 1 + m.reach(s.SelectionSet, seen)
		case *ast.InlineFragment:
			n += 1 + m.reach(s.SelectionSet, seen)
		case *ast.FragmentSpread:
			n++
			if f := m.fragments[s.Name]; f != nil && !seen[f] {
				seen[f] = true
				n += m.reach(f.SelectionSet, seen)
			}
		}
		if n > maxVisits {
			break
		}
	}
	return n
}

// withinLimits returns an error if a document exceeds a limit.
func withinLimits(doc *ast.QueryDocument, aliases, depth int) *output.Error {
	over := func(format string, args ...any) *output.Error {
		return &output.Error{Message: fmt.Sprintf(format, args...), Code: output.CodeValidation}
	}
	if n := len(doc.Operations); n > maxOperations {
		return over("the query has %d operations, at most %d are allowed", n, maxOperations)
	}
	if n := len(doc.Fragments); n > maxFragments {
		return over("the query has %d fragments, at most %d are allowed", n, maxFragments)
	}
	if depth <= 0 || depth > maxDepth {
		depth = maxDepth
	}
	m := newMeter(doc)
	for _, op := range doc.Operations {
		if n := len(op.VariableDefinitions); n > maxVariables {
			return over("the operation has %d variables, at most %d are allowed", n, maxVariables).At(op.Position)
		}
		one := m.set(op.SelectionSet)
		switch {
		case one.depth > depth:
			return over("the operation is %d fields deep, at most %d are allowed", one.depth, depth).At(op.Position)
		case one.aliases > aliases:
			return over("the operation has %s aliases, at most %d are allowed", count(one.aliases), aliases).At(op.Position)
		case one.fields > maxCost:
			return over("the operation asks for %s fields, at most %d are allowed", count(one.fields), maxCost).At(op.Position)
		}
	}
	if m.visits(doc) > maxVisits {
		return over("the operations and fragments of the query are too large in total")
	}
	return nil
}

// count formats a number that may be saturated.
func count(n int) string {
	if n >= math.MaxInt32 {
		return "billions of"
	}
	return fmt.Sprint(n)
}
