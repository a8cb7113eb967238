package setting

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Entry describes a key to its readers.
type Entry struct {
	// Path is the key's path, such as repositories[].code.
	Path string
	// Type says what a value is, and its limits; empty for an object or a list of objects, which have entries of their members instead.
	Type string
	// Default is the default as it is written in the file; empty for none.
	Default string
	// Variable is the environment variable of the key, with 0 for indexes; empty for a key with members.
	Variable string
	// Doc is the meaning, with the unit of a number.
	Doc string
}

// Describe returns the entries of keys and of their members.
func Describe(keys []Key) []Entry { return describe(nil, "", keys) }

func describe(found []Entry, path string, keys []Key) []Entry {
	for _, k := range keys {
		at := joined(path, k.name)
		found = append(found, k.entry(at))
		switch {
		case k.each != nil:
			found = describe(found, at+"[]", k.elements(1)[0])
		case k.members != nil:
			found = describe(found, at, k.members)
		}
	}
	return found
}

func (k Key) entry(path string) Entry {
	e := Entry{Path: path, Doc: k.doc}
	if k.members != nil || k.each != nil {
		return e
	}
	e.Type, e.Variable = k.typeText(), Variable(strings.ReplaceAll(path, "[]", "[0]"))
	if text, ok := k.fallback.(string); k.fallback != nil && !k.isSecret() && (!ok || text != "") && (!k.isList() || len(listOf(k)) > 0) {
		e.Default = yamlLine(plainYaml(defaultOf(k)))
	}
	return e
}

func listOf(k Key) []string {
	texts, _ := k.fallback.([]string)
	return texts
}

// typeText says what a value is, and its limits.
func (k Key) typeText() string {
	text := expected(k)
	switch {
	case k.isSecret():
		text = "a text; or " + k.secretFile() + ", a file that contains it"
	case k.zeroDisables:
		text += "; 0s turns it off"
	case k.isList() && k.description != "":
		text = "a list; each is " + k.description
	case k.description != "":
		text = k.description
	}
	if k.required && k.fallback == "" {
		text += "; required"
		if k.optional != nil {
			text += " unless " + k.unlessKey + " is " + k.unlessValue
		}
	}
	return text
}

// Commented writes the values of keys as a YAML file in which each key has a comment with its meaning, type, default and variable. The
// members of a list without elements are comments. Secrets are not written, nor texts that are empty where only choices are valid. The
// values must have been decoded.
func Commented(header string, keys []Key) []byte {
	w := &commentWriter{}
	w.comment("", header)
	for i := range keys {
		w.WriteByte('\n')
		w.object("", "", keys[i:i+1])
	}
	return w.Bytes()
}

// commentWriter writes keys with comments. Each line begins with outer, which makes it a comment.
type commentWriter struct {
	bytes.Buffer
	outer string
}

// commentWidth is the width of comments in characters.
const commentWidth = 110

func (w *commentWriter) comment(indent, text string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := w.outer + indent + "#"
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > commentWidth {
				w.WriteString(line + "\n")
				line = w.outer + indent + "#"
			}
			line += " " + word
		}
		w.WriteString(line + "\n")
	}
}

// object writes keys, whose parent is at path.
func (w *commentWriter) object(indent, path string, keys []Key) {
	w.element(indent, indent, path, keys)
}

// element is like object; the line of the first key begins with first instead of indent.
func (w *commentWriter) element(first, indent, path string, keys []Key) {
	for _, k := range keys {
		at := joined(path, k.name)
		e := k.entry(strings.ReplaceAll(at, "[0]", "[]"))
		text := e.Doc
		if e.Type != "" {
			text += "\n" + strings.ToUpper(e.Type[:1]) + e.Type[1:]
			if e.Default != "" {
				text += "; default " + e.Default
			}
			text += ". " + e.Variable
		}
		w.comment(indent, text)
		w.WriteString(w.outer + first + k.name + ":")
		first = indent
		switch {
		case k.each != nil:
			w.WriteByte('\n')
			w.elements(indent, at, k)
		case k.members != nil:
			w.WriteByte('\n')
			w.object(indent+"  ", at, k.members)
		default:
			if value := sampleValue(k); value != "" {
				w.WriteString(" " + value)
			}
			w.WriteByte('\n')
		}
	}
}

// elements writes the elements of a list, or a comment with an element when there is none.
func (w *commentWriter) elements(indent, path string, k Key) {
	all, outer := k.each(), w.outer
	if len(all) == 0 {
		all, w.outer = k.elements(1), outer+indent+"# "
		indent = ""
		Decode(nil, all[0], &ErrorList{})
	}
	for i, keys := range all {
		w.element(indent+"  - ", indent+"    ", Indexed(path, i), keys)
	}
	w.outer = outer
}

// sampleValue returns the value of a key on one line; empty for the default of a key without a value.
func sampleValue(k Key) string {
	if text, ok := k.target.(*string); k.isSecret() || ok && *text == "" && len(k.choices) > 0 {
		return ""
	}
	value := yamlValue(k)
	if value.Tag == "!!null" {
		return ""
	}
	return yamlLine(value)
}

// plainYaml returns the node of a default.
func plainYaml(value any) *yaml.Node {
	if texts, ok := value.([]string); ok {
		return yamlList(texts)
	}
	if text, ok := value.(string); ok {
		return yamlText(text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(value)}
}

// yamlLine writes a scalar or a list in flow style.
func yamlLine(n *yaml.Node) string {
	text, err := yaml.Marshal(n)
	if err != nil {
		// Scalars and lists of them always marshal.
		return ""
	}
	return strings.TrimSpace(string(text))
}
