package kinds

import (
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
)

// Given is what decides before the counts do.
type Given struct {
	// Fields are those with which the index is made: tutti's own and those of the mapping file.
	Fields *mapping.Field
	// Declared are the types that the repository declares.
	Declared *mapping.Types
	// Live is the mapping of the index that is replaced.
	Live *mapping.Field
}

// Decide returns the types of the paths that counts decide, nil for none: that of the kind that most records hold, in a tie object before
// number before boolean before text. A text is a date if every one is. A date of the index that is replaced stays one while every value is a
// date, whatever is declared.
func Decide(counts core.Kinds, given Given) *mapping.Types {
	d := decider{given: given, values: map[string]bool{}}
	for path, p := range counts.All() { // what is above a path comes before it
		if !d.below(path) {
			d.decide(path, p)
		}
	}
	return d.types.Types()
}

// Uncertain returns a path for which Decide may return another type, or none, if the kinds of a number of records were not in counts; "" if
// there is none.
func Uncertain(counts core.Kinds, gone int64, given Given) (path string) {
	d := decider{given: given, values: map[string]bool{}}
	for path, p := range counts.All() {
		if d.below(path) {
			continue
		}
		if !d.certain(path, p, p.Less(gone)) {
			return path
		}
		d.decide(path, p)
	}
	return ""
}

// certain reports whether a path has the same type with any counts between least and most.
func (d *decider) certain(path string, most, least core.PathKinds) bool {
	if d.given.Fields.Lookup(path) != nil {
		return true
	}
	if live := d.given.Live.Lookup(path); live != nil && live.Type == mapping.Date {
		switch {
		case most.OnlyDates():
			return least.Texts > 0
		case most.Texts > 0 && least.NoDate+least.Objects+least.Numbers+least.Booleans == 0: // it might have dates only
			return false
		}
	}
	if _, is := d.given.Declared.Lookup(path); is {
		return true
	}
	of, lowest := most.ByPrecedence(), least.ByPrecedence()
	kind := 0
	for i, n := range of {
		if n > of[kind] {
			kind = i
		}
	}
	for i, n := range of {
		if lowest[kind] == 0 || i < kind && n >= lowest[kind] || i > kind && n > lowest[kind] {
			return false
		}
	}
	return typeOf(path, least) == typeOf(path, most)
}

// decider is the state of Decide. values has the paths of values, below which nothing is decided.
type decider struct {
	given  Given
	types  mapping.TypesBuilder
	values map[string]bool
}

// below reports whether a path is below a value.
func (d *decider) below(path string) bool {
	for at := 0; ; {
		dot := strings.IndexByte(path[at:], '.')
		if dot < 0 {
			return false
		}
		at += dot + 1
		above := path[:at-1]
		if d.values[above] {
			return true
		}
		if f := d.given.Fields.Lookup(above); f != nil && (!f.Container() || f.Disabled()) {
			return true
		}
	}
}

func (d *decider) decide(path string, p core.PathKinds) {
	if d.given.Fields.Lookup(path) != nil {
		return
	}
	live := d.given.Live.Lookup(path)
	declared, is := d.given.Declared.Lookup(path)
	switch {
	case live != nil && live.Type == mapping.Date && p.OnlyDates():
		d.set(path, mapping.Date)
	case is:
		d.values[path] = declared.Type != ""
	default:
		d.set(path, typeOf(path, p))
	}
}

func (d *decider) set(path string, t mapping.Type) {
	d.types.Decide(path, t)
	d.values[path] = t != mapping.Object && t != mapping.Nested
}

// typeOf returns the type of the kind that most records hold at a path.
func typeOf(path string, p core.PathKinds) mapping.Type {
	most := max(p.Objects, p.Numbers, p.Booleans, p.Texts)
	switch {
	case p.Objects == most && path[strings.LastIndexByte(path, '.')+1:] == mapping.ReservedInfo:
		return mapping.Flattened
	case p.Objects == most && p.Lists > 0:
		return mapping.Nested
	case p.Objects == most:
		return mapping.Object
	case p.Numbers == most:
		return mapping.Double
	case p.Booleans == most:
		return mapping.Boolean
	case p.Undated > 0:
		return mapping.Keyword
	default:
		return mapping.Date
	}
}

// Lists returns the fields of the lists of objects of types, with the objects above them, nil for none. An index is made with them: otherwise
// the first elements without a value would not be found as elements.
func Lists(types *mapping.Types) *mapping.Field {
	root := &mapping.Field{Type: mapping.Object}
	for path, d := range types.All() {
		if d.Type != mapping.Nested {
			continue
		}
		at := root
		for name := range strings.SplitSeq(path, ".") {
			if at.Properties == nil {
				at.Properties = map[string]*mapping.Field{}
			}
			if at.Properties[name] == nil {
				at.Properties[name] = &mapping.Field{Type: mapping.Object}
			}
			at = at.Properties[name]
		}
		at.Type = mapping.Nested
	}
	if root.Empty() {
		return nil
	}
	return root
}
