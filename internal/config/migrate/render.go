package migrate

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
)

// entry is a key of the file, an element of a list, or the whole file.
type entry struct {
	name    string
	value   any
	comment string
	// off is set if the entry is written as a comment.
	off bool
	// members are those of an object or, with list, the elements of a list.
	members []*entry
	list    bool
}

// file returns the text of the file, with keys that tutti does not accept as comments.
func (m *migration) file(products []found) ([]byte, error) {
	root := &entry{}
	for _, leaf := range m.foreign.Keys() {
		e := root.at(leaf.Path)
		e.value, e.comment = leaf.Value, m.origin[leaf.Path]
		if leaf.Secret {
			m.hide(root, e, leaf.Path)
		}
	}
	rest := m.rest(products)
	for {
		text := []byte(head(products))
		for _, e := range root.members {
			text = append(text, "\n"+strings.Join(e.lines(), "\n")+"\n"...)
		}
		text = append(text, rest...)
		_, err := config.Parse(text, nil)
		if err == nil {
			return text, nil
		}
		if !m.disable(root, setting.Errors(err)[0]) {
			return nil, core.WrapError(core.CodeInternal, "the migrated configuration is not valid", err)
		}
	}
}

// companions are keys that are only valid together with a secret.
func companions() map[string]string {
	return map[string]string{"index.password": "index.username", "auth.introspection.clientSecret": "auth.introspection.clientId"}
}

// hide replaces a secret by a comment, and makes the key of the user that it belongs to a comment.
func (m *migration) hide(root, e *entry, path string) {
	from := e.comment
	what := fmt.Sprintf("set %s, or %sFile to a file that holds it", setting.Variable(path), path)
	e.off, e.name, e.value = true, e.name+"File", ""
	e.comment = from + ", not copied: name a file that holds it, or set " + setting.Variable(path)
	if companion, ok := companions()[path]; ok {
		user := root.at(companion)
		user.off = true
		user.comment += "; remove the # when the secret is set"
		what += fmt.Sprintf(", and %s to %v", companion, user.value)
	}
	m.warn("%s is a secret and not copied (%s): %s", path, from, what)
}

// disable makes the key that an error is about a comment, and reports whether it found the key.
func (m *migration) disable(root *entry, err *core.Error) bool {
	message := regexp.MustCompile(` \(line \d+\)`).ReplaceAllString(err.Message, "")
	path, _, _ := strings.Cut(message, ": ")
	e := root
	for _, name := range words(path) {
		next := e.find(name)
		if next == nil {
			break
		}
		e = next
	}
	if e == root {
		return false
	}
	what := path
	if len(e.members) > 0 {
		what = "the part of the file that has it"
	}
	m.warn("%s: %s is written as a comment", message, what)
	e.off = true
	e.comment = strings.TrimPrefix(e.comment+", not valid: "+message, ", ")
	return true
}

// words splits a path: the words of repositories[0].code are repositories, 0 and code.
func words(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// at returns the entry of a path, added when it is missing.
func (e *entry) at(path string) *entry {
	for _, name := range words(path) {
		next := e.find(name)
		if next == nil {
			next = &entry{name: name}
			_, e.list = setting.IndexOf(name)
			e.members = append(e.members, next)
		}
		e = next
	}
	return e
}

// find returns a member of an object or an element of a list that is no comment, nil when there is none.
func (e *entry) find(name string) *entry {
	index, _ := setting.IndexOf(name)
	for _, member := range e.members {
		switch {
		case member.off:
		case e.list && index == 0, !e.list && member.name == name:
			return member
		case e.list:
			index--
		}
	}
	return nil
}

// lines returns the lines of an entry with a name.
func (e *entry) lines() []string {
	var lines []string
	switch {
	case e.list:
		lines = append(lines, e.name+":")
		for _, item := range e.members {
			lines = append(lines, item.itemLines()...)
		}
	case len(e.members) > 0:
		lines = append(lines, e.name+":")
		for _, member := range e.members {
			lines = append(lines, indented("  ", member.lines())...)
		}
	case e.off:
		lines = append(lines, e.name+": "+masked(scalar(e.value)))
	default:
		lines = append(lines, e.name+": "+scalar(e.value))
	}
	if e.comment != "" {
		lines[0] += "  # " + sentence(e.comment)
	}
	if e.off {
		return indented("# ", lines)
	}
	return lines
}

// itemLines returns the lines of an element of a list.
func (e *entry) itemLines() []string {
	var lines []string
	for _, member := range e.members {
		lines = append(lines, indented("    ", member.lines())...)
	}
	lines[0] = "  - " + lines[0][4:]
	if e.off {
		lines = append([]string{"  # " + sentence(e.comment)}, indented("  # ", trimmed("  ", lines))...)
	}
	return lines
}

func indented(prefix string, lines []string) []string {
	for i := range lines {
		lines[i] = prefix + lines[i]
	}
	return lines
}

func trimmed(prefix string, lines []string) []string {
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], prefix)
	}
	return lines
}

// scalar returns a value in one line of YAML.
func scalar(value any) string {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return "null"
	}
	n.Style = yaml.FlowStyle
	for _, text := range append(n.Content, &n) {
		if text.Kind == yaml.ScalarNode {
			text.Style = 0
			if text.Tag == "!!str" && strings.ContainsFunc(text.Value, func(r rune) bool { return !unicode.IsPrint(r) }) {
				text.Style = yaml.DoubleQuotedStyle
			}
		}
	}
	line, err := yaml.Marshal(&n)
	if err != nil {
		return "null"
	}
	return string(bytes.TrimSpace(line))
}

func head(products []found) string {
	var text strings.Builder
	text.WriteString("# Made by tutti migrate config from:\n")
	for _, p := range products {
		text.WriteString("#   " + p.name + ": " + printable(p.source) + "\n")
	}
	text.WriteString("# A comment beside a value names the key that it is from; keys without a counterpart are at the end.\n" +
		"# Then: tutti check --config tutti.yaml\n")
	return text.String()
}

// rest returns the variables that were not converted to keys, as comments.
func (m *migration) rest(products []found) string {
	var text strings.Builder
	for _, p := range products {
		var lines []string
		for _, v := range p.variables {
			if !p.used[v.name] {
				lines = append(lines, m.restLine(p, v))
			}
		}
		if len(lines) > 0 {
			text.WriteString("\n# " + p.name + ": keys without a counterpart, or with another use\n" + strings.Join(lines, ""))
		}
	}
	return text.String()
}

func (m *migration) restLine(p found, v variable) string {
	k := p.row(v.name)
	line := "#   " + printable(v.String()) + ": " + k.value(v)
	if k == nil {
		return line + "  (unknown)\n"
	}
	note := k.note
	if k.to != "" && note == "" {
		note = k.to + " is not set from it"
		if origin := m.origin[indexed(k.to, v.name)]; origin != "" {
			note = strings.ReplaceAll(k.to, "#", "") + " is from " + origin
		}
	}
	if note != "" {
		line += "  (" + printable(note) + ")"
	}
	return line + "\n"
}
