package schemas

import (
	"encoding/json"
	"slices"
	"strings"
)

// canonical appends a text of v that is equal for equal JSON values: members in order, numbers by their value.
func canonical(dst []byte, v *value) []byte {
	switch v.kind {
	case kindNull:
		return append(dst, "null"...)
	case kindBool:
		return append(dst, v.text...)
	case kindNumber:
		return append(dst, canonicalNumber(v.text)...)
	case kindString:
		return appendCanonicalString(dst, v.text)
	case kindArray:
		dst = append(dst, '[')
		for i := range v.items() {
			dst = append(canonical(dst, &v.items()[i]), ',')
		}
		return append(dst, ']')
	default:
		members := make([]*member, 0, len(v.members()))
		for i := range v.members() {
			members = append(members, &v.members()[i])
		}
		slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(appendCanonicalString(dst, m.name), ':')
			dst = append(canonical(dst, &m.value), ',')
		}
		return append(dst, '}')
	}
}

// appendCanonicalString need not write JSON: it must only be unambiguous.
func appendCanonicalString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	}
	return append(append(dst, s...), '"')
}

// valueOf makes a tree of what encoding/json decoded with numbers as json.Number.
func valueOf(decoded any) value {
	switch d := decoded.(type) {
	case bool:
		if d {
			return value{kind: kindBool, text: "true"}
		}
		return value{kind: kindBool, text: "false"}
	case json.Number:
		return value{kind: kindNumber, text: d.String()}
	case string:
		return value{kind: kindString, text: d}
	case []any:
		v := value{kind: kindArray, parts: &parts{}}
		for _, item := range d {
			v.parts.items = append(v.parts.items, valueOf(item))
		}
		return v
	case map[string]any:
		v := value{kind: kindObject, parts: &parts{}}
		for name, item := range d {
			v.parts.add(member{name, valueOf(item)})
		}
		return v
	default:
		return value{kind: kindNull}
	}
}

// shown is how a message shows a value of a schema.
func shown(v *value) string {
	if v.kind == kindString {
		return quoted(v.text)
	}
	return shortened(string(canonical(nil, v)), maxQuoted)
}
