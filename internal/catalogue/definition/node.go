package definition

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"tutti/internal/core"
)

// kind is the type of a node in JSON.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// String names the kind as a message does.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "a text", "a list", "an object"}[k]
}

// node is a value of a file, which remembers the file. Members keep their order, numbers their literal.
type node struct {
	kind kind
	// text is the text, the literal of a number, or true or false.
	text    string
	members []member
	items   []*node
	// file is the name of the file that the node was read from, as messages say it.
	file string
}

type member struct {
	name  string
	value *node
}

// member returns the value of a name, nil when there is none or when it is null.
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

// absent reports whether the node says nothing: null, or a text of white space only, as Arranger's templates have it.
func (n *node) absent() bool {
	return n.kind == kindNull || n.kind == kindText && strings.TrimSpace(n.text) == ""
}

// string returns the text of the node, "" for one that is absent or no text.
func (n *node) string() string {
	if n == nil || n.kind != kindText || n.absent() {
		return ""
	}
	return n.text
}

// flag returns true or false, nil for a node that is neither.
func (n *node) flag() *bool {
	if n == nil || n.kind != kindBool {
		return nil
	}
	is := n.text == "true"
	return &is
}

// number returns the number, nil for a node that is none.
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

// writeText keeps <, > and & as they are: charts.query and the like are read by people too.
func writeText(out *bytes.Buffer, text string) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text always encodes, and a buffer takes everything
	out.Truncate(out.Len() - 1)
}

// below returns the JSON pointer of a member or an item (RFC 6901).
func below(pointer, name string) string { return core.Pointer(pointer, name) }

func belowIndex(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }
