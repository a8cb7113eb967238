package graph

import (
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// answer is a response that is being written, and what went wrong on the way.
type answer struct {
	dst []byte
	// path is where the field that is being planned or written stands in the response.
	path   []step
	faults []*fault
	// dropped counts the faults beyond maxFaults.
	dropped int
	// warnings are what the response says beside its data, each once.
	warnings []warning
	// spans is the room in which nested elements are noted, written that for the members of objects.
	spans   []span
	written []written
	// ahead is what was written of nested elements before what stands around it; nil for nothing.
	ahead []byte
	// counting is set while nested elements are counted before they are written.
	counting bool
	// dotted is set when a document has members whose names are paths.
	dotted bool
}

// maxAnswerBytes is how large an answer may become: lists that begin behind that, or reach it, are null.
const maxAnswerBytes = 64 << 20

// write appends one value of JSON; false when that is null.
type write func(w *answer) bool

// member is a field of an object of the response.
type member struct {
	key string
	// required is set where null is not allowed: then the object is null in its place.
	required bool
	field    *ast.Field
	write    write
}

// memberOf makes the member of a field.
func memberOf(f *ast.Field, do write) member {
	return member{key: f.Alias, required: f.Definition.Type.NonNull, field: f, write: do}
}

func (w *answer) push(name string) { w.path = append(w.path, step{name: name}) }
func (w *answer) index(i int)      { w.path = append(w.path, step{index: i}) }
func (w *answer) pop()             { w.path = w.path[:len(w.path)-1] }

// null writes null.
func (w *answer) null() bool {
	w.dst = append(w.dst, "null"...)
	return false
}

// fail notes a fault of the field that the path leads to.
func (w *answer) fail(f *fault) {
	if len(w.faults) >= maxFaults {
		w.dropped++
		return
	}
	f.path = slices.Clone(w.path)
	w.faults = append(w.faults, f)
}

// failed notes a fault and writes null in the place of the value.
func (w *answer) failed(f *fault) bool {
	w.fail(f)
	return w.null()
}

// told counts all faults.
func (w *answer) told() int { return len(w.faults) + w.dropped }

// object writes an object. It is null when a member is that must not be.
func (w *answer) object(members []member) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	for i := range members {
		m := &members[i]
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(appendText(w.dst, m.key), ':')
		w.push(m.key)
		told := w.told()
		filled := m.write(w)
		if !filled && m.required {
			if w.told() == told {
				w.fail(missing(m.field))
			}
			w.pop()
			w.dst = w.dst[:start]
			return w.null()
		}
		w.pop()
	}
	w.dst = append(w.dst, '}')
	return true
}

// missing is the fault of a field that has no value and must have one.
func missing(f *ast.Field) *fault {
	name := f.Name
	if f.ObjectDefinition != nil {
		name = f.ObjectDefinition.Name + "." + name
	}
	return (&fault{message: "the field " + name + " must not be null, and has no value", code: codeInternal}).at(f.Position)
}

// list writes a list of n items. It is null when an item is that must not be.
func (w *answer) list(n int, required bool, item func(i int) bool) bool {
	start := len(w.dst)
	w.dst = append(w.dst, '[')
	for i := range n {
		if len(w.dst) > maxAnswerBytes {
			w.dst = w.dst[:start]
			return w.failed(&fault{message: "the answer is too large: ask for fewer documents, or for fewer buckets by their argument max", code: codeInput})
		}
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.index(i)
		filled := item(i)
		w.pop()
		if !filled && required {
			w.dst = w.dst[:start]
			return w.null()
		}
	}
	w.dst = append(w.dst, ']')
	return true
}

func (w *answer) text(s string) bool {
	w.dst = appendText(w.dst, s)
	return true
}

func (w *answer) int(n int64) bool {
	w.dst = strconv.AppendInt(w.dst, n, 10)
	return true
}

func (w *answer) flag(b bool) bool {
	w.dst = strconv.AppendBool(w.dst, b)
	return true
}

// number writes a number, null for what is none.
func (w *answer) number(f float64) bool {
	start := len(w.dst)
	w.dst = appendNumber(w.dst, f)
	return w.dst[start] != 'n'
}

// raw writes what is JSON already.
func (w *answer) raw(b []byte) bool {
	if len(b) == 0 {
		return w.null()
	}
	w.dst = append(w.dst, b...)
	return string(b) != "null"
}

// nothing writes null.
func nothing(w *answer) bool { return w.null() }

// constant writes the same text every time.
func constant(s string) write { return func(w *answer) bool { return w.text(s) } }

// itemRequired reports whether the items of a list must not be null.
func itemRequired(f *ast.Field) bool {
	return f.Definition.Type.Elem != nil && f.Definition.Type.Elem.NonNull
}
