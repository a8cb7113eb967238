package validation

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/base/order"
	"tutti/schemas/violation"
)

// Limits of the expansion of a schema. The library applies each schema every time it is reached: without limits a schema of a
// few lines runs for hours. Work within these limits is bounded by the maximum time of a validation.
const (
	// maxExpansion is the maximum number of schemas that a schema leads to. A schema counts each time it is reached, except
	// below itself.
	maxExpansion = 100_000
	// maxInPlace is the maximum length of a chain of schemas for the same value that refer to each other.
	maxInPlace = 100
	// maxRecursions is the maximum number of places at which a schema leads back to itself.
	maxRecursions = 500
)

// edge is a reference from a schema to one that it applies: to a part of the value, or without a step to the same value.
type edge struct {
	schema *jsonschema.Schema
	step   *step
	// dynamic is set for a reference whose target depends on the path to it.
	dynamic bool
}

// step selects parts of a value. With neither pattern nor owner, a name is one property and an index one item; otherwise it
// selects the properties that match, or the properties or items that the owner does not name.
type step struct {
	item    bool
	name    string
	index   int
	pattern func(name string) bool
	owner   *jsonschema.Schema
	// key is different for each pattern, and for unevaluated* and propertyNames, whose parts are not those of other keywords.
	key string
}

// edgesOf returns the schemas that a schema applies, in a fixed order.
func edgesOf(s *jsonschema.Schema) []edge {
	var all []edge
	add := func(schema *jsonschema.Schema, at *step) {
		if schema != nil {
			all = append(all, edge{schema: schema, step: at})
		}
	}
	add(s.Ref, nil)
	for _, dynamic := range []*jsonschema.Schema{s.RecursiveRef, s.DynamicRef} {
		if dynamic != nil {
			all = append(all, edge{schema: dynamic, dynamic: true})
		}
	}
	for _, some := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not, s.If, s.Then, s.Else}} {
		for _, part := range some {
			add(part, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if part, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			add(part, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		add(s.DependentSchemas[name], nil)
	}
	addProperties(s, add)
	addItems(s, add)
	return all
}

func addProperties(s *jsonschema.Schema, add func(*jsonschema.Schema, *step)) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		add(s.Properties[name], &step{name: name})
	}
	for _, p := range patternsOf(s) {
		add(p.schema, &step{key: p.expression.String(), pattern: func(name string) bool { return p.expression.Match(name, &atomic.Bool{}) }})
	}
	if additional := additionalOf(s); additional != nil {
		add(additional, &step{owner: s})
	}
	add(s.PropertyNames, &step{key: "propertyNames"})
	add(s.UnevaluatedProperties, &step{owner: s, key: "unevaluatedProperties"})
}

func addItems(s *jsonschema.Schema, add func(*jsonschema.Schema, *step)) {
	prefix, rest := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		rest = items
	case []*jsonschema.Schema:
		prefix = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	}
	for i, part := range prefix {
		add(part, &step{item: true, index: i})
	}
	add(rest, &step{item: true, index: len(prefix), owner: s})
	add(s.Contains, &step{item: true, owner: s})
	add(s.UnevaluatedItems, &step{item: true, owner: s, key: "unevaluatedItems"})
}

// patternsOf returns the patternProperties of a schema, in a fixed order. Those of a meta-schema, which only the library matches, are
// none.
func patternsOf(s *jsonschema.Schema) []patternSchema {
	all := slices.Clone(extensionOf(s).patterns)
	order.Sort(all, func(a, b patternSchema) int { return cmp.Compare(a.expression.String(), b.expression.String()) })
	return all
}

// additionalOf returns the schema of the properties that a schema does not name.
func additionalOf(s *jsonschema.Schema) *jsonschema.Schema {
	if own := extensionOf(s).additional; own != nil {
		return own
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return additional
}

// overlaps reports whether two steps may lead to the same part of a value. Two different patterns count as not overlapping.
func (a *step) overlaps(b *step) bool {
	switch {
	case a.item != b.item:
		return false
	case a.pattern != nil && b.pattern == nil:
		return b.key == "" && b.owner == nil && a.pattern(b.name)
	case b.pattern != nil && a.pattern == nil:
		return b.overlaps(a)
	case a.key != "" || b.key != "":
		return a.key == b.key && a.owner == b.owner
	case a.owner != nil && b.owner != nil:
		return true
	case b.owner != nil:
		return b.overlaps(a)
	case a.item:
		return a.index == b.index || a.owner != nil && b.index > a.index
	case a.owner != nil:
		return !hasProperty(a.owner, b.name)
	default:
		return a.name == b.name
	}
}

// hasProperty reports whether a schema has rules for a property of its own.
func hasProperty(s *jsonschema.Schema, name string) bool {
	return propertiesOf(s)[name] != nil || slices.ContainsFunc(patternsOf(s), func(p patternSchema) bool {
		return p.expression.Match(name, &atomic.Bool{})
	})
}

// expansion visits all schemas that can be reached from one.
type expansion struct {
	count int
	path  []*visit
	// steps are the steps from the whole value to the part that the last schema of path validates.
	steps []*step
	found *violation.List
}

// visit is a schema on the path from the first to the current one.
type visit struct {
	schema *jsonschema.Schema
	depth  int
	// recursions are the steps from a value to the parts that the schema applies to again.
	recursions [][]*step
}

// expansionViolations returns the violations of these limits, nil for none.
func expansionViolations(s *jsonschema.Schema) *violation.List {
	e := &expansion{}
	e.visit(s, 1)
	return e.found
}

func (e *expansion) refuse(s *jsonschema.Schema, message string) {
	e.found = violation.NewList(pointerOf(s.Location), "$ref", message)
}

// visit visits a schema, the last of a chain of schemas for the same value, of length chain.
func (e *expansion) visit(s *jsonschema.Schema, chain int) {
	if e.count++; e.count > maxExpansion {
		e.found = violation.NewList("", "schema", "leads to more than "+violation.Counted(maxExpansion, "schema", "schemas")+", where a $ref counts each time it is reached")
		return
	}
	if i := slices.IndexFunc(e.path, func(v *visit) bool { return v.schema == s }); i >= 0 {
		e.recursion(e.path[i])
		return
	}
	if chain > maxInPlace {
		e.refuse(e.path[len(e.path)-maxInPlace].schema, "begins a chain of more than "+violation.Counted(maxInPlace, "schema", "schemas for the same value"))
		return
	}
	own := &visit{schema: s, depth: len(e.steps)}
	e.path = append(e.path, own)
	for _, next := range edgesOf(s) {
		if next.dynamic {
			next.schema = e.dynamic(next.schema)
		}
		if next.step == nil {
			e.visit(next.schema, chain+1)
		} else {
			e.steps = append(e.steps, next.step)
			e.visit(next.schema, 1)
			e.steps = e.steps[:own.depth]
		}
		if e.found != nil {
			return
		}
	}
	if recursesTwice(own.recursions) {
		e.refuse(s, "recurses to the same part of a value in two ways, so that the number of checks would double at each level")
	}
	e.path = e.path[:len(e.path)-1]
}

func (e *expansion) recursion(to *visit) {
	switch {
	case to.depth == len(e.steps):
		e.refuse(to.schema, "refers to itself for the same value, so that a check would never end")
	case len(to.recursions) == maxRecursions:
		e.refuse(to.schema, "recurses at more than "+violation.Counted(maxRecursions, "place", "places"))
	default:
		to.recursions = append(to.recursions, slices.Clone(e.steps[to.depth:]))
	}
}

// dynamic returns the target of a $recursiveRef or $dynamicRef, which is the first on the path with the anchor.
func (e *expansion) dynamic(target *jsonschema.Schema) *jsonschema.Schema {
	for _, v := range e.path {
		if target.RecursiveAnchor && v.schema.RecursiveAnchor || target.DynamicAnchor != "" && target.DynamicAnchor == v.schema.DynamicAnchor {
			return v.schema
		}
	}
	return target
}

// recursesTwice reports whether a schema with these recursions can reach a part of a value in two ways: two recursions reach the
// same part, or one continues where another ended.
func recursesTwice(recursions [][]*step) bool {
	for i, a := range recursions {
		for j, b := range recursions {
			if i == j || len(a) > len(b) || !overlapping(a, b) {
				continue
			}
			if slices.ContainsFunc(recursions, func(c []*step) bool { return overlapping(c, b[len(a):]) }) {
				return true
			}
		}
	}
	return false
}

// overlapping reports whether one of two paths may be the beginning of the other.
func overlapping(a, b []*step) bool {
	for i := range min(len(a), len(b)) {
		if !a[i].overlaps(b[i]) {
			return false
		}
	}
	return true
}
