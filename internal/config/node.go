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

// maxDepth and maxNodes bound the file: aliases may contain themselves, or multiply without end.
const (
	maxDepth = 20
	maxNodes = 100_000
)

// shape is what a node is.
type shape int

const (
	shapeNull shape = iota
	shapeScalar
	shapeList
	shapeObject
)

// String puts the shape in words.
func (s shape) String() string {
	switch s {
	case shapeNull:
		return "nothing"
	case shapeScalar:
		return "a single value"
	case shapeList:
		return "a list"
	case shapeObject:
		return "an object"
	default:
		return "unknown"
	}
}

// node is a value as given, before anybody knows what it should be.
type node struct {
	shape shape
	// text is the scalar's; tag is its YAML tag, "" when it came from the environment and may be anything.
	text, tag string
	items     []*node
	names     []string
	members   map[string]*node
	// where says where the value came from: a line of the file or a variable.
	where string
}

func newObject(where string) *node {
	return &node{shape: shapeObject, members: map[string]*node{}, where: where}
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

// member returns a member that says something; nil where there is none or it is null.
func (n *node) member(name string) *node {
	if n == nil || n.shape != shapeObject {
		return nil
	}
	if m := n.members[name]; m != nil && m.shape != shapeNull {
		return m
	}
	return nil
}

// says reports whether a member holds anything. Its target is empty all the same when it holds something wrong, which was
// noted then.
func (n *node) says(name string) bool {
	m := n.member(name)
	return m != nil && (m.shape != shapeScalar || m.text != "")
}

// item returns an element of a list, nil where there is none.
func (n *node) item(i int) *node {
	if n == nil || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// parse reads a YAML document. A file that holds no keys at all returns nil and its fault; other faults of its form are
// noted, and what can be read is given all the same.
func parse(data []byte, f *faults) *node {
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
		f.add("", "", "keep one document", "the file holds more than one YAML document")
	}
	c := converter{faults: f, left: maxNodes}
	switch root := c.convert(&document, "", 0); root.shape {
	case shapeObject:
		return root
	case shapeNull:
		return newObject("")
	default:
		f.add("", root.where, "", "the file holds %s, not keys", root.shape)
		return nil
	}
}

func lineOf(y *yaml.Node) string { return fmt.Sprintf("line %d", y.Line) }

// converter turns YAML nodes into nodes, following aliases.
type converter struct {
	faults *faults
	// left is how many nodes may still come.
	left int
}

func (c *converter) convert(y *yaml.Node, path string, depth int) *node {
	if c.left <= 0 {
		return &node{where: lineOf(y)}
	}
	if c.left--; depth > maxDepth || c.left == 0 {
		c.left = 0
		c.faults.add(path, lineOf(y), "", "the file is nested too deeply or too large")
		return &node{where: lineOf(y)}
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
		n := &node{shape: shapeList, where: lineOf(y)}
		for i, item := range y.Content {
			n.items = append(n.items, c.convert(item, indexed(path, i), depth+1))
		}
		return n
	case yaml.MappingNode:
		return c.object(y, path, depth)
	default:
		n := &node{shape: shapeScalar, text: y.Value, tag: y.ShortTag(), where: lineOf(y)}
		if n.tag == "!!null" {
			n.shape = shapeNull
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
			c.faults.add(at, lineOf(y.Content[i]), "remove one of them", "the key is given twice")
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
