package equality

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
)

// maxDepth is how deep a document is compared by its values: each level is read once more for those above it. What nests deeper is
// compared by its bytes.
const maxDepth = 256

// paths are the names of members, each with those of the objects that it holds.
type paths map[string]paths

// pathsOf returns the paths of a document's members.
func pathsOf(document []byte) paths {
	found := make(paths)
	found.add(document, jsontext.Space(document, 0), 0)
	return found
}

func (p paths) add(text []byte, at, depth int) {
	if depth > maxDepth || at >= len(text) {
		return
	}
	switch text[at] {
	case '{':
		jsontext.Members(text, at, func(name []byte, escaped bool, value jsontext.Span) bool {
			name = unescaped(name, escaped)
			below := p[string(name)]
			if below == nil {
				below = make(paths)
				p[string(name)] = below
			}
			below.add(text, value.Start, depth+1)
			return true
		})
	case '[':
		jsontext.Elements(text, at, func(item jsontext.Span) bool {
			p.add(text, item.Start, depth+1)
			return true
		})
	}
}

// canonical returns a document as encoding/json encodes it once decoded, but with the sorted hashes of the elements in place
// of an array of several objects without order. With kept, it leaves out the members that are not among these paths.
func (r *Rules) canonical(document []byte, kept paths) []byte {
	w := writer{text: document, out: make([]byte, 0, len(document))}
	var root *node
	if r != nil {
		root = r.root
	}
	w.value(jsontext.Space(document, 0), root, kept, 0)
	return w.out
}

// writer writes the canonical form of a text.
type writer struct {
	text, out []byte
	// members are those of the objects that are being written, the innermost last; sums likewise the hashes of elements.
	members []member
	sums    []Sum
}

type member struct {
	name  []byte
	value jsontext.Span
}

// value writes the value at an index of the text.
func (w *writer) value(at int, n *node, kept paths, depth int) {
	end := jsontext.Value(w.text, at)
	switch {
	case end <= at:
	case depth > maxDepth:
		w.out = append(w.out, w.text[at:end]...)
	case w.text[at] == '{':
		w.object(at, n, kept, depth)
	case w.text[at] == '[':
		w.array(at, n, kept, depth)
	case w.text[at] == '"':
		w.string(w.text[at:end])
	default:
		w.out = append(w.out, w.text[at:end]...)
	}
}

func (w *writer) object(at int, n *node, kept paths, depth int) {
	from := len(w.members)
	jsontext.Members(w.text, at, func(name []byte, escaped bool, value jsontext.Span) bool {
		w.members = append(w.members, member{unescaped(name, escaped), value})
		return true
	})
	byName := func(a, b member) int { return bytes.Compare(a.name, b.name) }
	if own := w.members[from:]; !slices.IsSortedFunc(own, byName) {
		order.Stable(own, byName)
	}
	w.out = append(w.out, '{')
	first := true
	for i := from; i < len(w.members); i++ {
		m, rules := w.members[i], n.member(w.members[i].name)
		below, keep := kept[string(m.name)]
		if kept != nil && !keep || rules != nil && rules.without {
			continue
		}
		if i+1 < len(w.members) && bytes.Equal(w.members[i+1].name, m.name) { // the last one of a name counts
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.name(m.name)
		w.out = append(w.out, ':')
		w.value(m.value.Start, rules, below, depth+1)
	}
	w.members = w.members[:from]
	w.out = append(w.out, '}')
}

func (w *writer) array(at int, n *node, kept paths, depth int) {
	if n != nil && n.unordered && w.severalObjects(at) {
		w.set(at, n, kept, depth)
		return
	}
	w.out = append(w.out, '[')
	first := true
	jsontext.Elements(w.text, at, func(item jsontext.Span) bool {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.value(item.Start, n, kept, depth+1)
		return true
	})
	w.out = append(w.out, ']')
}

// severalObjects reports whether an array has several elements and all are objects.
func (w *writer) severalObjects(at int) bool {
	count, objects := 0, true
	jsontext.Elements(w.text, at, func(item jsontext.Span) bool {
		count++
		objects = w.text[item.Start] == '{'
		return objects
	})
	return objects && count > 1
}

// set writes the hashes of an array's elements, sorted, after a byte that no JSON has.
func (w *writer) set(at int, n *node, kept paths, depth int) {
	from, start := len(w.sums), len(w.out)
	jsontext.Elements(w.text, at, func(item jsontext.Span) bool {
		w.value(item.Start, n, kept, depth+1)
		sum := sha256.Sum256(w.out[start:])
		w.out, w.sums = w.out[:start], append(w.sums, Sum(sum[:]))
		return true
	})
	own := w.sums[from:]
	order.Sort(own, func(a, b Sum) int { return bytes.Compare(a[:], b[:]) })
	w.out = append(w.out, '[', 0)
	for i := range own {
		w.out = append(w.out, own[i][:]...)
	}
	w.out, w.sums = append(w.out, ']'), w.sums[:from]
}

// string writes a string, given with its quotes.
func (w *writer) string(raw []byte) {
	if plain(raw[1:max(1, len(raw)-1)]) {
		w.out = append(w.out, raw...)
		return
	}
	w.encode(jsontext.Unquote(raw))
}

// name writes an unescaped name as a string.
func (w *writer) name(name []byte) {
	if plain(name) {
		w.out = append(append(append(w.out, '"'), name...), '"')
		return
	}
	w.encode(string(name))
}

// encode writes a text as encoding/json does.
func (w *writer) encode(text string) {
	encoded, _ := json.Marshal(text) // a string can always be encoded
	w.out = append(w.out, encoded...)
}

// plain reports whether encoding/json writes the inside of a string as it is.
func plain(inside []byte) bool {
	for _, c := range inside {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// unescaped returns the inside of a string with its escapes decoded.
func unescaped(name []byte, escaped bool) []byte {
	if !escaped {
		return name
	}
	return jsontext.AppendUnescaped(nil, name)
}
