package segment

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"tutti/internal/index/mapping"
)

// plan is what a Builder does with each field of a mapping.
type plan struct {
	seed   maphash.Seed
	root   *growingSpace
	spaces []*growingSpace
	// elements are the spaces of the nested fields, columns those of the fields that have values: their own, those of their
	// multi-fields and of what they are copied to.
	elements map[*mapping.Field]*growingSpace
	columns  map[*mapping.Field][]*growingColumn
	all      []*growingColumn
	// constants are the columns that have the same value in every document.
	constants []constant
}

type constant struct {
	column *growingColumn
	value  []byte
}

// growingSpace is the rows of a path while documents come. current is the row that values belong to.
type growingSpace struct {
	path    string
	parent  *growingSpace
	current uint32
	parents []uint32
	span    []uint32
}

// holds reports whether each row of other is below, or is, one of s.
func (s *growingSpace) holds(other *growingSpace) bool {
	for other != nil && other != s {
		other = other.parent
	}
	return other == s
}

// newPlan makes the plan of a tree of which no field stands at two paths.
func newPlan(tree *mapping.Field) *plan {
	p := &plan{
		seed: maphash.MakeSeed(), root: &growingSpace{},
		elements: map[*mapping.Field]*growingSpace{}, columns: map[*mapping.Field][]*growingColumn{},
	}
	byPath := map[string]*growingColumn{}
	copies := map[*mapping.Field]*growingColumn{}
	p.container("", tree, p.root, byPath, copies)
	own := maps.Clone(p.columns) // what is copied to a field is not copied on
	for f, from := range copies {
		for _, path := range copiesOf(f) {
			if to := tree.Lookup(path); to != nil && byPath[path] != nil && byPath[path].space.holds(from.space) {
				p.columns[f] = append(p.columns[f], own[to]...)
			}
		}
	}
	return p
}

func (p *plan) container(prefix string, f *mapping.Field, in *growingSpace, byPath map[string]*growingColumn,
	copies map[*mapping.Field]*growingColumn,
) {
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		child, path := f.Properties[name], prefix+name
		switch {
		case child.Type == mapping.Nested:
			below := &growingSpace{path: path, parent: in, span: []uint32{0}}
			p.spaces = append(p.spaces, below)
			p.elements[child] = below
			p.container(path+".", child, below, byPath, copies)
		case child.Container():
			p.container(path+".", child, in, byPath, copies)
		default:
			p.leaf(path, child, in, byPath)
			if child.Params["copy_to"] != nil {
				copies[child] = byPath[path]
			}
		}
	}
}

// leaf makes the columns of a field that is no container and of its multi-fields.
func (p *plan) leaf(path string, f *mapping.Field, in *growingSpace, byPath map[string]*growingColumn) {
	add := func(path string, of *mapping.Field) {
		c := &growingColumn{rule: ruleOf(path, of), space: in, seed: p.seed}
		byPath[path] = c
		if c.rule.form == formNone {
			return
		}
		p.all = append(p.all, c)
		p.columns[f] = append(p.columns[f], c)
		if of.Type == "constant_keyword" && in == p.root {
			if value := scalarOf(of.Params["value"]); value != nil {
				p.constants = append(p.constants, constant{c, value})
			}
		}
	}
	add(path, f)
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		add(path+"."+name, f.Fields[name])
	}
}

// copiesOf returns the paths that a field's values are copied to.
func copiesOf(f *mapping.Field) []string {
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
