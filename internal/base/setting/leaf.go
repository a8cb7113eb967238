package setting

import (
	"strconv"
)

// Leaf is a value that is set in a tree of nodes.
type Leaf struct {
	// Path is the key's path, such as repositories[0].code.
	Path string
	// Value is a string, int64, float64, bool or []string, as the key needs it in a YAML file; a value that is not valid for its key is a string.
	Value any
	// Source is the source of the value.
	Source string
	// Secret reports that the value must not be shown.
	Secret bool
}

// Leaves returns the values of keys that are set in n, in the order of keys.
func Leaves(n *Node, keys []Key) []Leaf { return leaves(nil, "", n, keys) }

func leaves(found []Leaf, path string, n *Node, keys []Key) []Leaf {
	for _, k := range keys {
		at, value := joined(path, k.name), n.Member(k.name)
		switch {
		case value == nil:
		case k.each != nil:
			for i, element := range k.elements(len(value.Items)) {
				found = leaves(found, Indexed(at, i), value.Items[i], element)
			}
		case k.members != nil:
			found = leaves(found, at, value, k.members)
		default:
			found = append(found, Leaf{at, value.valueOf(k), value.Source, k.isSecret()})
		}
	}
	return found
}

// valueOf returns the value in the type of its key.
func (n *Node) valueOf(k Key) any {
	switch k.target.(type) {
	case *[]string:
		texts := SplitList(n.Text)
		for _, item := range n.Items {
			texts = append(texts, item.Text)
		}
		return texts
	case *int, *int64:
		if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
			return v
		}
	case *float64:
		if v, err := strconv.ParseFloat(n.Text, 64); err == nil {
			return v
		}
	case *bool, **bool:
		if v, ok := ParseBool(n.Text); ok {
			return v
		}
	}
	return n.Text
}
