package mapping

import (
	"fmt"
	"maps"

	"tutti/internal/core"
)

// Merge gives a new tree of known's fields and added's; where both have a field, added's parameters win. CodeConflict,
// naming the path, where the types differ. Neither tree is changed.
func Merge(known, added *Field) (*Field, error) {
	if known == nil {
		return added.Clone(), nil
	}
	if added == nil {
		return known, nil
	}
	return merge("", known, added)
}

func merge(path string, known, added *Field) (*Field, error) {
	if known.Type != added.Type {
		return nil, core.NewError(core.CodeConflict, fmt.Sprintf(
			"the field %q is of type %s in the index and of type %s in the mapping", path, known.Type, added.Type))
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

// mergeAll shares every child that only one side has: trees are never changed.
func mergeAll(path string, known, added map[string]*Field) (map[string]*Field, error) {
	if len(added) == 0 {
		return known, nil
	}
	out := make(map[string]*Field, len(known)+len(added))
	maps.Copy(out, known)
	for name, child := range added {
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

// Missing gives the part of wanted that known lacks, nil when it lacks nothing: what can be added to known without
// touching a field that it has, whatever its type.
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
