package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tutti/internal/base/setting"
)

// maxValues and maxDepth bound a YAML file: aliases can be recursive or multiply.
const (
	maxValues = 100_000
	maxDepth  = 20
)

// document is a part of a Spring configuration.
type document struct {
	// profile is the condition under which it is read; "" for always.
	profile   string
	variables []variable
}

// isActive reports whether a profile of the document's condition is active: a list, in which ! negates.
func (d document) isActive(profiles []string) bool {
	return slices.ContainsFunc(setting.SplitList(strings.ReplaceAll(d.profile, "|", ",")), func(one string) bool {
		name, negated := strings.CutPrefix(strings.TrimSpace(one), "!")
		return slices.Contains(profiles, name) != negated
	})
}

// newDocument returns a document without the keys of its condition.
func newDocument(variables []variable) document {
	var d document
	for _, v := range variables {
		switch spelling(v.name) {
		case "SPRINGCONFIGACTIVATEONPROFILE", "SPRINGPROFILES":
			d.profile = v.value
		default:
			d.variables = append(d.variables, v)
		}
	}
	return d
}

// readSpring reads an application.yml or application.properties.
func readSpring(path string) ([]document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if filepath.Ext(path) == ".properties" {
		return parseProperties(path, string(data))
	}
	var documents []document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	left := maxValues
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, invalid(path, "is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		variables, ok := flatten(nil, "", &root, 0, &left)
		if !ok {
			return nil, invalid(path, "is nested too deeply or too large")
		}
		documents = append(documents, newDocument(variables))
	}
}

// flatten appends the values of a node with dotted names, as in maestro.repositories[0].code; false when there are too many.
func flatten(list []variable, name string, n *yaml.Node, depth int, left *int) ([]variable, bool) {
	if *left--; *left < 0 || depth > maxDepth {
		return nil, false
	}
	var ok bool
	switch n.Kind {
	case yaml.AliasNode:
		return flatten(list, name, n.Alias, depth+1, left)
	case yaml.DocumentNode, yaml.SequenceNode:
		for i, item := range n.Content {
			at := name
			if n.Kind == yaml.SequenceNode {
				at = setting.Indexed(name, i)
			}
			if list, ok = flatten(list, at, item, depth+1, left); !ok {
				return nil, false
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := strings.TrimPrefix(name+"."+n.Content[i].Value, ".")
			if n.Content[i].Tag == "!!merge" {
				at = name
			}
			if list, ok = flatten(list, at, n.Content[i+1], depth+1, left); !ok {
				return nil, false
			}
		}
	default:
		if n.ShortTag() != "!!null" {
			list = append(list, variable{name: name, value: n.Value})
		}
	}
	return list, true
}

// parseProperties parses a file of Java's Properties, in which #--- starts another document.
func parseProperties(path, text string) ([]document, error) {
	var documents []document
	var list []variable
	logical := ""
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		line = strings.TrimLeft(line, " \t\f")
		switch {
		case logical == "" && (strings.TrimSpace(line) == "#---" || strings.TrimSpace(line) == "!---"):
			documents, list = append(documents, newDocument(list)), nil
			continue
		case logical == "" && (line == "" || line[0] == '#' || line[0] == '!'):
			continue
		}
		logical += line
		if before := strings.TrimRight(logical, `\`); (len(logical)-len(before))%2 == 1 {
			if logical = logical[:len(logical)-1]; i+1 < len(lines) {
				continue
			}
		}
		v, err := property(logical)
		if err != nil {
			return nil, invalid(path, "line %d: %v", i+1, err)
		}
		list, logical = append(list, v), ""
	}
	return append(documents, newDocument(list)), nil
}

// property parses a line: the name ends at the first =, : or space that is not escaped.
func property(line string) (variable, error) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	value := strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	name, err := unescaped(line[:end])
	if err != nil {
		return variable{}, err
	}
	value, err = unescaped(value)
	return variable{name: name, value: value}, err
}

// unescaped replaces the escapes of Java's Properties.
func unescaped(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n', 'r', 't', 'f':
			b.WriteByte(' ')
		case 'u':
			if i+5 > len(s) {
				return "", fmt.Errorf(`\u needs four digits`)
			}
			code, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u%s is not a character`, s[i+1:i+5])
			}
			b.WriteRune(rune(code))
			i += 4
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
