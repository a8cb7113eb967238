// Package openapi merges the OpenAPI document from parts in YAML, which are stored beside the handlers that they describe.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// common contains what all parts share: info, security schemes, and components that several parts refer to.
//
//go:embed common.yaml
var common []byte

// anchors is the member of a part that contains YAML anchors, which other members repeat by alias. It is not served.
const anchors = "anchors"

// Merge returns the OpenAPI document of parts as JSON, in their order, with the version of the program and the base path of the
// server. A member that two parts define is an error.
func Merge(version, basePath string, parts ...[]byte) ([]byte, error) {
	document := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range append([][]byte{common}, parts...) {
		var read yaml.Node
		if err := yaml.Unmarshal(part, &read); err != nil {
			return nil, fmt.Errorf("reading a part of the OpenAPI document: %w", err)
		}
		if len(read.Content) != 1 || read.Content[0].Kind != yaml.MappingNode {
			return nil, errors.New("a part of the OpenAPI document is not an object")
		}
		if err := add(document, read.Content[0], "#"); err != nil {
			return nil, err
		}
	}
	if basePath == "" {
		basePath = "/"
	}
	var own yaml.Node
	if err := own.Encode(map[string]any{
		"info": map[string]string{"version": version}, "servers": []any{map[string]string{"url": basePath}},
	}); err != nil {
		return nil, fmt.Errorf("completing the OpenAPI document: %w", err)
	}
	if err := add(document, &own, "#"); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := write(&b, document); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// add adds part to into: members to an object, elements to an array. at names into in errors.
func add(into, part *yaml.Node, at string) error {
	if into.Kind != part.Kind || part.Kind == yaml.ScalarNode {
		return fmt.Errorf("two parts of the OpenAPI document define %s", at)
	}
	if part.Kind == yaml.SequenceNode {
		into.Content = append(into.Content, part.Content...)
		return nil
	}
	for name, value := range members(part) {
		if at == "#" && name == anchors {
			continue
		}
		if has := member(into, name); has == nil {
			into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
		} else if err := add(has, value, at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// member returns the value of a member, nil where there is none.
func member(object *yaml.Node, name string) *yaml.Node {
	for n, value := range members(object) {
		if n == name {
			return value
		}
	}
	return nil
}

// members iterates over the members of an object, and in place of a merge key (<<) over those of the object that it refers to.
func members(object *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i < len(object.Content); i += 2 {
			name, value := object.Content[i], resolve(object.Content[i+1])
			if name.Tag != "!!merge" {
				if !yield(name.Value, value) {
					return
				}
				continue
			}
			for n, v := range members(value) {
				if !yield(n, v) {
					return
				}
			}
		}
	}
}

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// write writes a node as JSON, the members of objects in their order.
func write(b *bytes.Buffer, n *yaml.Node) error {
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		separator := byte('{')
		seen := map[string]bool{}
		for name, value := range members(n) {
			if seen[name] {
				return fmt.Errorf("a part of the OpenAPI document defines %s twice, at or below line %d", name, n.Line)
			}
			seen[name] = true
			b.WriteByte(separator)
			separator = ','
			if err := writeValue(b, name); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := write(b, value); err != nil {
				return err
			}
		}
		if separator == '{' {
			b.WriteByte('{')
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, value := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := write(b, value); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		var value any = n.Value
		if n.ShortTag() != "!!timestamp" {
			if err := n.Decode(&value); err != nil {
				return fmt.Errorf("line %d of a part of the OpenAPI document: %w", n.Line, err)
			}
		}
		return writeValue(b, value)
	}
	return nil
}

func writeValue(b *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing the OpenAPI document: %w", err)
	}
	b.Truncate(b.Len() - 1) // the end of the line
	return nil
}
