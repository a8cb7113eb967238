package setting

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth and maxNodes bound the file: aliases can be recursive or multiply.
const (
	maxDepth = 20
	maxNodes = 100_000
)

// nodeKind is the kind of a node.
type nodeKind int

// Kinds of a Node.
const (
	kindNull nodeKind = iota
	KindScalar
	KindList
	KindObject
)

// String describes the kind for messages.
func (s nodeKind) String() string {
	switch s {
	case kindNull:
		return "nothing"
	case KindScalar:
		return "a single value"
	case KindList:
		return "a list"
	case KindObject:
		return "an object"
	default:
		return "unknown"
	}
}

// Node is an undecoded value.
type Node struct {
	Kind nodeKind
	// Text is the text of a scalar; tag is its YAML tag, "" for a value of the environment, which may have any type.
	Text, tag string
	Items     []*Node
	names     []string
	members   map[string]*Node
	// Source is the source of the value: a line of the file or a variable.
	Source string
}

// NewObject returns an object without members; where is its source.
func NewObject(where string) *Node {
	return &Node{Kind: KindObject, members: map[string]*Node{}, Source: where}
}

// Set sets a member of an object.
func (n *Node) Set(name string, value *Node) {
	if _, known := n.members[name]; !known {
		n.names = append(n.names, name)
	}
	n.members[name] = value
}

// Fill sets the member at path from a variable, unless it is set already or a part of the path is not an object. It reports whether it did.
func (n *Node) Fill(v EnvVariable, text string, path ...string) bool {
	for _, name := range path[:len(path)-1] {
		next := n.Member(name)
		if next == nil {
			next = NewObject("variable " + v.Name)
			n.Set(name, next)
		}
		if next.Kind != KindObject {
			return false
		}
		n = next
	}
	name := path[len(path)-1]
	if n.Member(name) != nil {
		return false
	}
	n.Set(name, scalarOf(EnvVariable{Name: v.Name, Value: text}))
	return true
}

func (n *Node) remove(name string) {
	delete(n.members, name)
	n.names = slices.DeleteFunc(n.names, func(s string) bool { return s == name })
}

// Member returns a member, nil when it is missing or null.
func (n *Node) Member(name string) *Node {
	if n == nil || n.Kind != KindObject {
		return nil
	}
	if m := n.members[name]; m != nil && m.Kind != kindNull {
		return m
	}
	return nil
}

// IsSet reports whether a member is set. Its target may be empty even so, after an error.
func (n *Node) IsSet(name string) bool {
	m := n.Member(name)
	return m != nil && (m.Kind != KindScalar || m.Text != "")
}

// Item returns an element of a list, nil when there is none.
func (n *Node) Item(i int) *Node {
	if n == nil || i >= len(n.Items) {
		return nil
	}
	return n.Items[i]
}

// Parse parses a YAML document. It returns nil, with an error, when the file contains no keys at all; other errors are reported, and the
// readable part is returned.
func Parse(data []byte, f *ErrorList) *Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return NewObject("")
	}
	if err != nil {
		f.Add("", "", "", "the file is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		f.Add("", "", "keep one document", "the file contains more than one YAML document")
	}
	c := converter{faults: f, left: maxNodes}
	switch root := c.convert(&document, "", 0); root.Kind {
	case KindObject:
		return root
	case kindNull:
		return NewObject("")
	default:
		f.Add("", root.Source, "", "the file contains %s instead of keys", root.Kind)
		return nil
	}
}

func lineOf(y *yaml.Node) string { return fmt.Sprintf("line %d", y.Line) }

// converter turns YAML nodes into nodes, following aliases.
type converter struct {
	faults *ErrorList
	// left is the remaining number of nodes.
	left int
}

func (c *converter) convert(y *yaml.Node, path string, depth int) *Node {
	if c.left <= 0 {
		return &Node{Source: lineOf(y)}
	}
	if c.left--; depth > maxDepth || c.left == 0 {
		c.left = 0
		c.faults.Add(path, lineOf(y), "", "the file is nested too deeply or too large")
		return &Node{Source: lineOf(y)}
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 1 {
			return c.convert(y.Content[0], path, depth+1)
		}
		return &Node{}
	case yaml.AliasNode:
		return c.convert(y.Alias, path, depth+1)
	case yaml.SequenceNode:
		n := &Node{Kind: KindList, Source: lineOf(y)}
		for i, item := range y.Content {
			n.Items = append(n.Items, c.convert(item, Indexed(path, i), depth+1))
		}
		return n
	case yaml.MappingNode:
		return c.object(y, path, depth)
	default:
		n := &Node{Kind: KindScalar, Text: y.Value, tag: y.ShortTag(), Source: lineOf(y)}
		if n.tag == "!!null" {
			n.Kind = kindNull
		}
		return n
	}
}

func (c *converter) object(y *yaml.Node, path string, depth int) *Node {
	n := NewObject(lineOf(y))
	for i := 0; i+1 < len(y.Content); i += 2 {
		name := y.Content[i].Value
		at := joined(path, name)
		if _, twice := n.members[name]; twice {
			c.faults.Add(at, lineOf(y.Content[i]), "remove one of them", "the key is set twice")
			continue
		}
		n.Set(name, c.convert(y.Content[i+1], at, depth+1))
	}
	return n
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Indexed returns the path of an element of a list.
func Indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
