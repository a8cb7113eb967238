package mapping

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Types are the types that were decided for paths of documents before their first value: by the schemas of a repository, or by a count of
// its values. They are immutable. Nil decides nothing.
type Types struct {
	paths map[string]Decided
}

// Decided is what is decided for a path.
type Decided struct {
	// Type is the type of the field: Keyword, Long, Double, Boolean or Date. It is "" where none is decided: for an object, and where both
	// objects and values are declared.
	Type Type
	// By has one declaration of each JSON type, by JSON type. They decide the type, the widest of all.
	By []Declaration
}

// Declaration is what a source says about a path.
type Declaration struct {
	JSON JSONType
	// Source names the source in messages, such as "rna:2", an analysis type with its version.
	Source string
}

// JSONType is a type of JSON Schema, or JSONDate.
type JSONType string

// JSON types of a Declaration.
const (
	JSONBoolean JSONType = "boolean"
	JSONInteger JSONType = "integer"
	JSONNumber  JSONType = "number"
	JSONObject  JSONType = "object"
	JSONString  JSONType = "string"
	// JSONDate is a string with the format of a date or a time.
	JSONDate JSONType = "date"
)

// MaxTypes is the number of paths that Types have at most, which bounds their memory: an index takes far fewer fields.
const MaxTypes = 50_000

// Lookup returns what is decided for a path; false for nothing.
func (t *Types) Lookup(path string) (Decided, bool) {
	if t == nil {
		return Decided{}, false
	}
	d, ok := t.paths[path]
	return d, ok
}

// Len returns the number of paths.
func (t *Types) Len() int {
	if t == nil {
		return 0
	}
	return len(t.paths)
}

// All returns all paths, sorted, with what is decided for them.
func (t *Types) All() iter.Seq2[string, Decided] {
	return func(yield func(string, Decided) bool) {
		if t == nil {
			return
		}
		for _, path := range slices.Sorted(maps.Keys(t.paths)) {
			if !yield(path, t.paths[path]) {
				return
			}
		}
	}
}

// Differing returns the paths that are declared with several types, each with its declarations in words: "experiment.ratio: integer
// (rna:1), number (rna:2); indexed as double".
func (t *Types) Differing() []string {
	var found []string
	for path, d := range t.All() {
		if len(d.By) > 1 {
			found = append(found, path+": "+d.String())
		}
	}
	return found
}

// String returns the declarations and the type in words.
func (d Decided) String() string {
	says := make([]string, len(d.By))
	for i, by := range d.By {
		says[i] = string(by.JSON) + " (" + by.Source + ")"
	}
	as := "indexed as " + string(d.Type)
	if d.Type == "" {
		as = "the first value decides"
	}
	return strings.Join(says, ", ") + "; " + as
}

// Merge returns the declarations of t and other; for a path that both declare, the widest type.
func (t *Types) Merge(other *Types) *Types {
	if t.Len() == 0 {
		return other
	}
	if other.Len() == 0 {
		return t
	}
	var b TypesBuilder
	for _, each := range []*Types{t, other} {
		for path, d := range each.All() {
			for _, by := range d.By {
				b.Declare(path, by.JSON, by.Source)
			}
		}
	}
	return b.Types()
}

// Or returns what t decides, and what other decides for the paths on which t decides nothing.
func (t *Types) Or(other *Types) *Types {
	if t.Len() == 0 {
		return other
	}
	if other.Len() == 0 {
		return t
	}
	both := &Types{paths: maps.Clone(other.paths)}
	maps.Copy(both.paths, t.paths)
	return both
}

// Below returns t with all paths below another one, "" for t itself.
func (t *Types) Below(above string) *Types {
	if above == "" || t.Len() == 0 {
		return t
	}
	below := &Types{paths: make(map[string]Decided, len(t.paths))}
	for path, d := range t.paths {
		below.paths[above+"."+path] = d
	}
	return below
}

// Without returns t without the paths of the fields that tree has and of those below its values and free-form objects.
func (t *Types) Without(tree *Field) *Types {
	var b TypesBuilder
	for path, d := range t.All() {
		if !tree.fixes(path) {
			b.set(path, d)
		}
	}
	return b.Types()
}

// fixes reports whether a tree has a field with values at a path, or above it.
func (f *Field) fixes(path string) bool {
	for path != "" {
		name, rest, _ := strings.Cut(path, ".")
		if f = f.Properties[name]; f == nil {
			return false
		}
		if !f.Container() || f.Disabled() {
			return true
		}
		path = rest
	}
	return true
}

// Retyped returns the fields with values of an index whose types another index, made now with the fields of wanted, would have otherwise
// for the same documents: by what t decides, and where the form of a value decided. A date stays one as long as all its values are dates.
func (t *Types) Retyped(wanted, live *Field) []Difference {
	var found []Difference
	for path, f := range live.All() {
		d, decided := t.Lookup(path)
		to := d.Type
		switch {
		case f.Container() || f.Type == Flattened || wanted.fixes(path) || strings.HasPrefix(path, Shared+"."):
			continue
		case f.Type == Date && to != Date:
			continue
		case !decided && f.Type == Long && !live.UsesDeclared() && wanted.UsesDeclared():
			to = Double
		}
		if to != "" && to != f.Type {
			found = append(found, Difference{Field: path, Wanted: string(to), Live: string(f.Type), Change: ChangeRebuild})
		}
	}
	return found
}

// TypesBuilder collects Types. The zero value is ready.
type TypesBuilder struct{ paths map[string]Decided }

// Declare adds a declaration of a path. Of equal ones the first is kept, of paths the first MaxTypes.
func (b *TypesBuilder) Declare(path string, as JSONType, source string) {
	d, known := b.paths[path]
	at, has := slices.BinarySearchFunc(d.By, as, func(by Declaration, as JSONType) int { return cmp.Compare(by.JSON, as) })
	if has || path == "" || !known && len(b.paths) >= MaxTypes {
		return
	}
	d.By = slices.Insert(slices.Clone(d.By), at, Declaration{JSON: as, Source: source})
	d.Type = widest(d.By)
	b.set(path, d)
}

// Decide sets the type of a path whatever is declared: by is why.
func (b *TypesBuilder) Decide(path string, t Type, by ...Declaration) {
	b.set(path, Decided{Type: t, By: by})
}

func (b *TypesBuilder) set(path string, d Decided) {
	if b.paths == nil {
		b.paths = map[string]Decided{}
	}
	b.paths[path] = d
}

// Types returns what was collected, nil for nothing. The builder must not be used after it.
func (b *TypesBuilder) Types() *Types {
	if len(b.paths) == 0 {
		return nil
	}
	return &Types{paths: b.paths}
}

// Declarations are the Types of aliases. It is safe for concurrent use. The zero value is ready.
type Declarations struct{ aliases sync.Map }

// Declare sets the Types of an alias.
func (d *Declarations) Declare(alias string, types *Types) { d.aliases.Store(alias, types) }

// Of returns the Types of an alias, nil if there are none.
func (d *Declarations) Of(alias string) *Types {
	types, _ := d.aliases.Load(alias)
	t, _ := types.(*Types)
	return t
}

// widest returns the type that takes the values of all declarations: integer < number; any other two are texts, and a date is one only if
// all say so. It is "" for an object, which is a field of no type of its own.
func widest(by []Declaration) Type {
	var t Type
	for _, d := range by {
		as := Keyword
		switch d.JSON {
		case JSONObject:
			return ""
		case JSONInteger:
			as = Long
		case JSONNumber:
			as = Double
		case JSONBoolean:
			as = Boolean
		case JSONDate:
			as = Date
		case JSONString:
		}
		t = Wider(t, as)
	}
	return t
}
