package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tutti/internal/core"
)

// Merge returns a new tree with the fields of known and added; where both have a field, added's parameters take precedence.
// CodeConflict, naming the path, when the types differ. Neither tree is changed.
func Merge(known, added *Field) (*Field, error) {
	return combine(known, added, "the field %q is of type %s in the index and of type %s in the mapping")
}

// Put returns a new tree with the fields of known and of a mapping file, which must not contradict known. The parameters of the
// file's fields replace those of known. Neither tree is changed.
func Put(known, file *Field) (*Field, error) {
	merged, err := Merge(known, file)
	if err != nil {
		return nil, err
	}
	for path, f := range file.All() {
		if both := merged.Lookup(path); !f.Container() && both != f {
			both.Params = f.Params // Merge has copied the field
		}
	}
	return merged, nil
}

// Unite returns a new tree with the fields of two indices that are searched as one; where both have a field, second's parameters
// take precedence, and two number types become one with the values of both. CodeConflict, naming the path, when the types differ
// otherwise. Neither tree is changed.
func Unite(first, second *Field) (*Field, error) {
	if first != nil && second != nil {
		first, second = first.Clone(), second.Clone()
		widen(first, second)
	}
	return combine(first, second, "the field %q is of type %s in one index of the alias and of type %s in another")
}

// combine merges two trees; wording is the message of a type conflict.
func combine(known, added *Field, wording string) (*Field, error) {
	if known == nil {
		return added.Clone(), nil
	}
	if added == nil {
		return known, nil
	}
	merged, err := merge("", known, added)
	if c, contradicts := errors.AsType[*typeConflictError](err); contradicts {
		return nil, core.NewError(core.CodeConflict, fmt.Sprintf(wording, c.path, c.known, c.added))
	}
	return merged, err
}

// typeConflictError is the error for a field with two types.
type typeConflictError struct {
	path         string
	known, added Type
}

// Error returns a message with the field and the types.
func (c *typeConflictError) Error() string {
	return fmt.Sprintf("the field %q is of type %s and of type %s", c.path, c.known, c.added)
}

func merge(path string, known, added *Field) (*Field, error) {
	if known.Type != added.Type {
		return nil, &typeConflictError{path: path, known: known.Type, added: added.Type}
	}
	out := *known
	if added.Dynamic != "" {
		out.Dynamic = added.Dynamic
	}
	if len(added.Params) > 0 {
		out.Params = maps.Clone(known.Params)
		if out.Params == nil {
			out.Params = maps.Clone(added.Params)
		}
		maps.Copy(out.Params, added.Params)
	}
	var err error
	if out.Properties, err = mergeAll(path, known.Properties, added.Properties); err != nil {
		return nil, err
	}
	if out.Fields, err = mergeAll(path, known.Fields, added.Fields); err != nil {
		return nil, err
	}
	return &out, nil
}

// mergeAll shares the children that only one side has: trees are immutable. It goes by name, so that of several conflicts always
// the same is reported.
func mergeAll(path string, known, added map[string]*Field) (map[string]*Field, error) {
	if len(added) == 0 {
		return known, nil
	}
	out := make(map[string]*Field, len(known)+len(added))
	maps.Copy(out, known)
	for _, name := range slices.Sorted(maps.Keys(added)) {
		child := added[name]
		old, both := known[name]
		if !both {
			out[name] = child
			continue
		}
		merged, err := merge(join(path, name), old, child)
		if err != nil {
			return nil, err
		}
		out[name] = merged
	}
	return out, nil
}

// Missing returns the part of wanted that known lacks, nil for none: what can be added to known without changing a field that it
// has, whatever its type.
func Missing(known, wanted *Field) *Field {
	if wanted == nil {
		return nil
	}
	if known == nil {
		return wanted.Clone()
	}
	lacking := missingOf(known.Properties, wanted.Properties)
	if len(lacking) == 0 {
		return nil
	}
	return &Field{Type: known.Type, Properties: lacking}
}

func missingOf(known, wanted map[string]*Field) map[string]*Field {
	var out map[string]*Field
	for name, child := range wanted {
		add := child.Clone()
		if old := known[name]; old != nil {
			if !old.Container() || !child.Container() {
				continue
			}
			if add = Missing(old, child); add == nil {
				continue
			}
		}
		if out == nil {
			out = map[string]*Field{}
		}
		out[name] = add
	}
	return out
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
