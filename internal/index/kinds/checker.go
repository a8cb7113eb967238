package kinds

import (
	"fmt"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// Checker finds values of another JSON kind than was decided for their path. It is immutable and safe for concurrent use.
type Checker struct{ root *decided }

// decided is a path. kind is "" where none is decided.
type decided struct {
	children map[string]*decided
	kind     string
}

// JSON kinds in words.
const (
	object  = "an object"
	number  = "a number"
	boolean = "a boolean"
	text    = "a text"
)

// NewChecker returns a Checker for the types of paths as mapping.RecordedKinds returns them, nil if there are none.
func NewChecker(types map[string]mapping.Type) *Checker {
	if len(types) == 0 {
		return nil
	}
	c := &Checker{root: &decided{}}
	for path, t := range types {
		at := c.root
		for name := range strings.SplitSeq(path, ".") {
			next := at.children[name]
			if next == nil {
				if at.children == nil {
					at.children = map[string]*decided{}
				}
				next = &decided{}
				at.children[name] = next
			}
			at = next
		}
		at.kind = kindOf(t)
	}
	return c
}

func kindOf(t mapping.Type) string {
	switch t {
	case mapping.Object, mapping.Nested, mapping.Flattened:
		return object
	case mapping.Double, mapping.Long:
		return number
	case mapping.Boolean:
		return boolean
	default:
		return text
	}
}

// Check returns a *document.ParsingError, of core.TypeOtherKind, for a document with a value of another kind.
func (c *Checker) Check(doc []byte) error {
	v := violation{path: []*decided{c.root}}
	document.Visit(doc, &v)
	if v.found == nil {
		return nil
	}
	return v.found
}

// violation is the state of Check.
type violation struct {
	path  []*decided
	names []string
	found *document.ParsingError
}

// Enter implements document.Visitor.
func (v *violation) Enter(name []byte) bool {
	next := v.path[len(v.path)-1].children[string(name)]
	if next == nil || v.found != nil {
		return false
	}
	v.path, v.names = append(v.path, next), append(v.names, string(name))
	return true
}

// Leave implements document.Visitor.
func (v *violation) Leave() {
	v.path, v.names = v.path[:len(v.path)-1], v.names[:len(v.names)-1]
}

// Object implements document.Visitor.
func (v *violation) Object(bool) bool {
	v.holds(object)
	return len(v.path[len(v.path)-1].children) > 0
}

// Value implements document.Visitor.
func (v *violation) Value(kind document.Kind, _ []byte) {
	switch kind {
	case document.KindNumber:
		v.holds(number)
	case document.KindBoolean:
		v.holds(boolean)
	case document.KindString:
		v.holds(text)
	case document.KindObject, document.KindNull:
	}
}

func (v *violation) holds(kind string) {
	wanted := v.path[len(v.path)-1].kind
	if wanted == "" || wanted == kind || v.found != nil {
		return
	}
	v.found = &document.ParsingError{
		Type: core.TypeOtherKind, Reason: fmt.Sprintf("[%s] holds %s, where most records held %s when the index was made", strings.Join(v.names, "."), kind, wanted),
	}
}
