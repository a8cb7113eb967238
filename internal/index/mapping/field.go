package mapping

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Type is the type of a Field, named as in Elasticsearch. Types other than those below come from a user's mapping and are opaque:
// their parameters are kept and their values are not checked.
type Type string

// Types that tutti derives, checks and renders.
const (
	Object    Type = "object"
	Nested    Type = "nested"
	Flattened Type = "flattened"
	Keyword   Type = "keyword"
	Long      Type = "long"
	Double    Type = "double"
	Boolean   Type = "boolean"
	Date      Type = "date"
)

// Untyped is the type of an object of a mapping file that has none.
const Untyped Type = ""

// FlatObject is OpenSearch's name for Flattened, which Parse returns instead. Foreign trees keep it, because its values can be
// neither counted nor sorted.
const FlatObject Type = "flat_object"

// Field is a node of the tree; the root is an Object. A published tree is immutable: Merge returns a new one, so that readers need
// no lock.
type Field struct {
	Type Type
	// Properties are the fields below an Object or a Nested, by name without dots: a dot in a mapping's name means an object, as in
	// Elasticsearch.
	Properties map[string]*Field
	// Fields are the multi-fields of a leaf.
	Fields map[string]*Field
	// Dynamic is the setting for unknown members of an object: "strict", "true", "false", "runtime", or empty to inherit it.
	Dynamic string
	// Params are the node's other parameters as in the mapping, such as format or ignore_above.
	Params map[string]json.RawMessage
}

// NewRoot returns an empty strict tree.
func NewRoot() *Field { return &Field{Type: Object, Dynamic: DynamicStrict} }

// Values of Field.Dynamic.
const (
	DynamicStrict  = "strict"
	DynamicTrue    = "true"
	DynamicFalse   = "false"
	DynamicRuntime = "runtime"
)

// Container reports whether f has fields below it.
func (f *Field) Container() bool { return f.Type == Object || f.Type == Nested || f.Type == Untyped }

// Disabled reports whether f is an object that is not indexed.
func (f *Field) Disabled() bool { return f.Container() && string(f.Params["enabled"]) == "false" }

// Lookup returns the field at a dotted path below f, multi-fields included; nil when there is none.
func (f *Field) Lookup(path string) *Field {
	for f != nil && path != "" {
		name, rest, _ := strings.Cut(path, ".")
		next := f.Properties[name]
		if next == nil {
			next = f.Fields[name]
		}
		f, path = next, rest
	}
	return f
}

// All returns all fields below f with their dotted paths, containers and multi-fields included, parents first and siblings by name.
func (f *Field) All() iter.Seq2[string, *Field] {
	return func(yield func(string, *Field) bool) { f.walk("", yield) }
}

func (f *Field) walk(prefix string, yield func(string, *Field) bool) bool {
	for _, children := range []map[string]*Field{f.Properties, f.Fields} {
		for _, name := range slices.Sorted(maps.Keys(children)) {
			child := children[name]
			if !yield(prefix+name, child) || !child.walk(prefix+name+".", yield) {
				return false
			}
		}
	}
	return true
}

// Size returns the number of fields below f, containers and multi-fields included, as Elasticsearch counts them for
// index.mapping.total_fields.limit.
func (f *Field) Size() int {
	n, _, _ := f.count(0)
	return n
}

// Empty reports whether f, a tree of additions, adds nothing.
func (f *Field) Empty() bool { return f == nil || len(f.Properties) == 0 }

// Clone returns a deep copy, except for the raw parameters, which are immutable.
func (f *Field) Clone() *Field {
	if f == nil {
		return nil
	}
	c := *f
	c.Properties, c.Fields = cloneFields(f.Properties), cloneFields(f.Fields)
	c.Params = maps.Clone(f.Params)
	return &c
}

func cloneFields(in map[string]*Field) map[string]*Field {
	if in == nil {
		return nil
	}
	out := make(map[string]*Field, len(in))
	for name, child := range in {
		out[name] = child.Clone()
	}
	return out
}
