package definition

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
)

// kind is the JSON type of a node.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// String returns the name of the kind for messages.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "a string", "a list", "an object"}[k]
}

// node is a JSON value that remembers its file. Members keep their order, numbers their literal.
type node struct {
	kind kind
	// text is the string, the literal of a number, or true or false.
	text    string
	members []member
	items   []*node
	// file is the name of the node's file for messages.
	file string
}

type member struct {
	name  string
	value *node
}

// member returns the value of a name, nil if it is missing or null.
func (n *node) member(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && m.value.kind != kindNull {
			return m.value
		}
	}
	return nil
}

// has reports whether there is a member of a name, null or not.
func (n *node) has(name string) bool {
	for _, m := range n.members {
		if m.name == name {
			return true
		}
	}
	return false
}

// absent reports whether the node has no content: null, or a string of white space only, as in Arranger's templates.
func (n *node) absent() bool {
	return n.kind == kindNull || n.kind == kindText && strings.TrimSpace(n.text) == ""
}

// string returns the string of the node, "" if it is absent or not a string.
func (n *node) string() string {
	if n == nil || n.kind != kindText || n.absent() {
		return ""
	}
	return n.text
}

// flag returns the boolean of the node, nil if it is not one.
func (n *node) flag() *bool {
	if n == nil || n.kind != kindBool {
		return nil
	}
	is := n.text == "true"
	return &is
}

// number returns the number of the node, nil if it is not one.
func (n *node) number() *float64 {
	if n == nil || n.kind != kindNumber {
		return nil
	}
	value, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		return nil
	}
	return &value
}

// raw returns the JSON of the node on one line, nil for none.
func (n *node) raw() json.RawMessage {
	if n == nil {
		return nil
	}
	var out bytes.Buffer
	n.write(&out)
	return bytes.Clone(out.Bytes()) // a definition keeps it, and the buffer may be twice as large
}

func (n *node) write(out *bytes.Buffer) {
	switch n.kind {
	case kindNull:
		out.WriteString("null")
	case kindBool, kindNumber:
		out.WriteString(n.text)
	case kindText:
		writeText(out, n.text)
	case kindList:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.write(out)
		}
		out.WriteByte(']')
	case kindObject:
		out.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, m.name)
			out.WriteByte(':')
			m.value.write(out)
		}
		out.WriteByte('}')
	}
}

// writeText writes <, > and & unescaped: people read charts.query and similar values too.
func writeText(out *bytes.Buffer, text string) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // encoding a string to a buffer never fails
	out.Truncate(out.Len() - 1)
}

// below returns the JSON pointer of a member or an item (RFC 6901).
func below(pointer, name string) string { return jsontext.Pointer(pointer, name) }

func belowIndex(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }
