package explore

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Node is a value of a document: a member of an object, an element of a list, or the document itself.
type Node struct {
	// Name is the name of a member, or the index of an element.
	Name string
	// Kind is object, list, text, number, boolean or null; Text is the value of the last four, as the document has it.
	Kind, Text string
	Children   []Node
}

// Tree returns the values of a JSON document, of which it takes at most so many; whole is false if there are more.
func Tree(document []byte, most int) (root Node, whole bool) {
	t := &tree{left: most}
	root = t.node("", gjson.ParseBytes(document))
	return root, t.left >= 0
}

type tree struct{ left int }

func (t *tree) node(name string, value gjson.Result) Node {
	n := Node{Name: name, Text: value.Raw}
	t.left--
	switch {
	case value.IsObject():
		n.Kind, n.Text = "object", ""
	case value.IsArray():
		n.Kind, n.Text = "list", ""
	case value.Type == gjson.String:
		n.Kind, n.Text = "text", value.String()
		return n
	case value.Type == gjson.Number:
		n.Kind = "number"
		return n
	case value.IsBool():
		n.Kind = "boolean"
		return n
	default:
		n.Kind = "null"
		return n
	}
	value.ForEach(func(key, child gjson.Result) bool {
		if t.left <= 0 {
			t.left = -1
			return false
		}
		n.Children = append(n.Children, t.node(key.String(), child))
		return t.left >= 0
	})
	return n
}

// DocumentFilter returns the SQON of the document with an id.
func DocumentFilter(id string) (json.RawMessage, error) {
	return encode(clause{"and", []any{clause{"in", fieldContent{"_id", []string{exact(id)}}}}})
}
