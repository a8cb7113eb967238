package config

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

const (
	kindNull nodeKind = iota
	kindScalar
	kindList
	kindObject
)

// String describes the shape for messages.
func (s nodeKind) String() string {
	switch s {
	case kindNull:
		return "nothing"
	case kindScalar:
		return "a single value"
	case kindList:
		return "a list"
	case kindObject:
		return "an object"
	default:
		return "unknown"
	}
}

// node is an undecoded value.
type node struct {
	kind nodeKind
	// text is the scalar's; tag is its YAML tag, "" for a value of the environment, which may have any type.
	text, tag string
	items     []*node
	names     []string
	members   map[string]*node
	// source is the source of the value: a line of the file or a variable.
	source string
}

func newObject(where string) *node {
	return &node{kind: kindObject, members: map[string]*node{}, source: where}
}

func (n *node) set(name string, value *node) {
	if _, known := n.members[name]; !known {
		n.names = append(n.names, name)
	}
	n.members[name] = value
}

func (n *node) remove(name string) {
	delete(n.members, name)
	n.names = slices.DeleteFunc(n.names, func(s string) bool { return s == name })
}

// member returns a member, nil when it is missing or null.
func (n *node) member(name string) *node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	if m := n.members[name]; m != nil && m.kind != kindNull {
		return m
	}
	return nil
}

// isSet reports whether a member is set. Its target may be empty even so, after an error.
func (n *node) isSet(name string) bool {
	m := n.member(name)
	return m != nil && (m.kind != kindScalar || m.text != "")
}

// item returns an element of a list, nil when there is none.
func (n *node) item(i int) *node {
	if n == nil || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// parse parses a YAML document. It returns nil, with an error, when the file contains no keys at all; other errors are reported, and the
// readable part is returned.
func parse(data []byte, f *errorList) *node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return newObject("")
	}
	if err != nil {
		f.add("", "", "", "the file is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		f.add("", "", "keep one document", "the file contains more than one YAML document")
	}
	c := converter{faults: f, left: maxNodes}
	switch root := c.convert(&document, "", 0); root.kind {
	case kindObject:
		return root
	case kindNull:
		return newObject("")
	default:
		f.add("", root.source, "", "the file contains %s instead of keys", root.kind)
		return nil
	}
}

func lineOf(y *yaml.Node) string { return fmt.Sprintf("line %d", y.Line) }

// converter turns YAML nodes into nodes, following aliases.
type converter struct {
	faults *errorList
	// left is the remaining number of nodes.
	left int
}

func (c *converter) convert(y *yaml.Node, path string, depth int) *node {
	if c.left <= 0 {
		return &node{source: lineOf(y)}
	}
	if c.left--; depth > maxDepth || c.left == 0 {
		c.left = 0
		c.faults.add(path, lineOf(y), "", "the file is nested too deeply or too large")
		return &node{source: lineOf(y)}
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 1 {
			return c.convert(y.Content[0], path, depth+1)
		}
		return &node{}
	case yaml.AliasNode:
		return c.convert(y.Alias, path, depth+1)
	case yaml.SequenceNode:
		n := &node{kind: kindList, source: lineOf(y)}
		for i, item := range y.Content {
			n.items = append(n.items, c.convert(item, indexed(path, i), depth+1))
		}
		return n
	case yaml.MappingNode:
		return c.object(y, path, depth)
	default:
		n := &node{kind: kindScalar, text: y.Value, tag: y.ShortTag(), source: lineOf(y)}
		if n.tag == "!!null" {
			n.kind = kindNull
		}
		return n
	}
}

func (c *converter) object(y *yaml.Node, path string, depth int) *node {
	n := newObject(lineOf(y))
	for i := 0; i+1 < len(y.Content); i += 2 {
		name := y.Content[i].Value
		at := joined(path, name)
		if _, twice := n.members[name]; twice {
			c.faults.add(at, lineOf(y.Content[i]), "remove one of them", "the key is set twice")
			continue
		}
		n.set(name, c.convert(y.Content[i+1], at, depth+1))
	}
	return n
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
