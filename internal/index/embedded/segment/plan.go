package segment

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/embedded/segment/fieldvalue"
	"tutti/internal/index/mapping"
)

// plan maps the fields of a mapping to the column builders of a Builder.
type plan struct {
	seed   maphash.Seed
	root   *rowSpaceBuilder
	spaces []*rowSpaceBuilder
	// elements are the row spaces of nested fields. columns are the builders that a field's values are added to: its own, those of
	// its multi-fields and of its copy_to targets.
	elements map[*mapping.Field]*rowSpaceBuilder
	columns  map[*mapping.Field][]*columnBuilder
	all      []*columnBuilder
	// constants are the columns that have the same value in every document.
	constants []constant
}

type constant struct {
	column *columnBuilder
	value  []byte
}

// rowSpaceBuilder collects the rows of a path while documents are added. current is the row that values are added to.
type rowSpaceBuilder struct {
	path    string
	parent  *rowSpaceBuilder
	current uint32
	parents []uint32
	span    []uint32
}

// contains reports whether other is s or nested below s.
func (s *rowSpaceBuilder) contains(other *rowSpaceBuilder) bool {
	for other != nil && other != s {
		other = other.parent
	}
	return other == s
}

// newPlan returns the plan of a tree in which no node is at two paths.
func newPlan(tree *mapping.Field) *plan {
	p := &plan{
		seed: maphash.MakeSeed(), root: &rowSpaceBuilder{},
		elements: map[*mapping.Field]*rowSpaceBuilder{}, columns: map[*mapping.Field][]*columnBuilder{},
	}
	byPath := map[string]*columnBuilder{}
	copies := map[*mapping.Field]*columnBuilder{}
	p.addContainer("", tree, p.root, byPath, copies)
	own := maps.Clone(p.columns) // copy_to is not transitive
	for f, from := range copies {
		for _, path := range copyTargets(f) {
			if to := tree.Lookup(path); to != nil && byPath[path] != nil && byPath[path].space.contains(from.space) {
				p.columns[f] = append(p.columns[f], own[to]...)
			}
		}
	}
	return p
}

func (p *plan) addContainer(prefix string, f *mapping.Field, in *rowSpaceBuilder, byPath map[string]*columnBuilder,
	copies map[*mapping.Field]*columnBuilder,
) {
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		child, path := f.Properties[name], prefix+name
		switch {
		case child.Type == mapping.Nested:
			below := &rowSpaceBuilder{path: path, parent: in, span: []uint32{0}}
			p.spaces = append(p.spaces, below)
			p.elements[child] = below
			p.addContainer(path+".", child, below, byPath, copies)
		case child.Container():
			p.addContainer(path+".", child, in, byPath, copies)
		default:
			p.addLeaf(path, child, in, byPath)
			if child.Params["copy_to"] != nil {
				copies[child] = byPath[path]
			}
		}
	}
}

// addLeaf adds the columns of a field that is not a container, and those of its multi-fields.
func (p *plan) addLeaf(path string, f *mapping.Field, in *rowSpaceBuilder, byPath map[string]*columnBuilder) {
	add := func(path string, of *mapping.Field) {
		c := &columnBuilder{rule: fieldvalue.RuleOf(path, of), space: in, seed: p.seed}
		byPath[path] = c
		if c.rule.Form == fieldvalue.FormNone {
			return
		}
		p.all = append(p.all, c)
		p.columns[f] = append(p.columns[f], c)
		if fieldtype.Of(of.Type).Constant && in == p.root {
			if value := fieldvalue.Scalar(of.Params["value"]); value != nil {
				p.constants = append(p.constants, constant{c, value})
			}
		}
	}
	add(path, f)
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		add(path+"."+name, f.Fields[name])
	}
}

// copyTargets returns the paths of a field's copy_to.
func copyTargets(f *mapping.Field) []string {
	raw := f.Params["copy_to"]
	var path string
	if err := json.Unmarshal(raw, &path); err == nil {
		return []string{path}
	}
	var paths []string
	if err := json.Unmarshal(raw, &paths); err != nil {
		return nil
	}
	return paths
}
