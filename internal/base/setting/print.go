package setting

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// YamlOf writes the values of keys as a YAML object. Secrets are masked. Values that are set in given, which may be nil, have a comment
// with their source.
func YamlOf(keys []Key, given *Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(yamlObject(keys, given))
	return out.Bytes(), err
}

func yamlObject(keys []Key, given *Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		set := given.Member(k.name)
		var value *yaml.Node
		switch {
		case k.each != nil:
			value = &yaml.Node{Kind: yaml.SequenceNode}
			for i, element := range k.each() {
				value.Content = append(value.Content, yamlObject(element, set.Item(i)))
			}
		case k.members != nil:
			value = yamlObject(k.members, set)
		default:
			value = yamlValue(k)
			if set == nil && k.isSecret() {
				set = given.Member(k.secretFile())
			}
			if set != nil {
				value.LineComment = set.Source
			}
		}
		n.Content = append(n.Content, yamlText(k.name), value)
	}
	return n
}

// yamlValue returns the value of a key without members.
func yamlValue(k Key) *yaml.Node {
	switch t := k.target.(type) {
	case *int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(*t)}
	case *int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(*t, 10)}
	case *float64:
		value := strconv.FormatFloat(*t, 'f', -1, 64)
		if *t == 0 || *t == 1 {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: value}
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: value}
	case *bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(*t)}
	case **bool:
		if *t == nil {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(**t)}
	case *time.Duration:
		return yamlText(shortDuration(*t))
	case *Secret:
		if k.credentials {
			return yamlText(maskStore(t.Reveal()))
		}
		return yamlText(t.String())
	case *string:
		if k.credentials {
			return yamlText(MaskUser(*t))
		}
		return yamlText(maskParameters(*t))
	case *[]string:
		return yamlList(*t)
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
}

func yamlList(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range texts {
		n.Content = append(n.Content, yamlText(s))
	}
	return n
}

func yamlText(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// shortDuration formats a duration without Go's trailing zeros: 1m for 1m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
