package definition

import (
	"math"
	"slices"

	"tutti/internal/base/spelling"
)

// check validates a node against a schema and records all problems. It renames old names in the node. It returns false if the
// node must not be used.
func check(n *node, s valueSchema, pointer string, f *findings) bool {
	if n.kind == kindNull || s.valueType == typeAny {
		return true
	}
	if what, hint := mismatch(n, s.valueType); what != "" {
		f.failAt(pointer, n.file, what, hint)
		return false
	}
	switch n.kind {
	case kindList:
		kept := make([]*node, 0, len(n.items))
		for i, item := range n.items {
			if checkItem(item, *s.item, belowIndex(pointer, i), f) {
				kept = append(kept, item)
			}
		}
		n.items = kept
	case kindObject:
		if s.keys != nil {
			checkMembers(n, s, pointer, f)
		}
	default:
	}
	return true
}

// checkItem rejects null, which stands for an absent member but not for an item.
func checkItem(n *node, s valueSchema, pointer string, f *findings) bool {
	if n.kind == kindNull {
		f.failAt(pointer, n.file, mustBe(s.valueType)+", not null", "take it out of the list")
		return false
	}
	return check(n, s, pointer, f)
}

func checkMembers(n *node, s valueSchema, pointer string, f *findings) {
	kept := make([]member, 0, len(n.members))
	for _, m := range n.members {
		at := within(pointer, m.name)
		k, known := s.key(m.name)
		if old, is := s.oldKey(m.name); !known && is {
			if n.has(old.name) {
				f.warnAt(at, m.value.file, "is an old name of "+old.name+", which is set too: it is ignored")
				continue
			}
			f.warnAt(at, m.value.file, "is an old name of "+old.name+", and read as it")
			k, known, m.name = old, true, old.name
		}
		if !known {
			f.warnUnknown(at, m, s)
			continue
		}
		if !check(m.value, k.valueSchema, at, f) {
			continue
		}
		if k.unused != "" && says(m.value) {
			f.warnAt(at, m.value.file, k.unused)
		}
		kept = append(kept, m)
	}
	n.members = kept
}

// warnUnknown searches for a similar key only if the warning is shown: a list may repeat one unknown key very often.
func (f *findings) warnUnknown(pointer string, m member, s valueSchema) {
	const what = "is unknown and ignored"
	if f.full() {
		f.omitted++
		return
	}
	f.add(withoutIndices(pointer)+" "+m.value.file+" "+what, func() string {
		text := locate(pointer, m.value.file, what)
		if near := spelling.Suggest(m.name, slices.Values(s.names())); near != "" {
			text += "; the nearest known key is " + near
		}
		return text
	})
}

// says reports whether a value is set.
func says(n *node) bool {
	return !n.absent() && n.text != "false" && (n.kind != kindObject || len(n.members) > 0)
}

// mismatch returns what is wrong with the type of a value, "" if it is valid. An empty string counts as an absent object, as in
// Arranger's own example.
func mismatch(n *node, w valueType) (what, hint string) {
	switch w {
	case typeText:
		if n.kind == kindText {
			return "", ""
		}
		return notA(n, w), "put it into double quotes"
	case typeFlag:
		if n.kind == kindBool {
			return "", ""
		}
		return notA(n, w), "write true or false, without quotes"
	case typeNumber, typeCount:
		if n.kind != kindNumber {
			return notA(n, w), "write a number, without quotes"
		}
		if value := n.number(); value == nil || w == typeCount && (*value < 0 || *value != math.Trunc(*value) || *value > math.MaxInt32) {
			return mustBe(w) + ", not " + printable(n.text), "write another number"
		}
		return "", ""
	case typeList:
		if n.kind == kindList {
			return "", ""
		}
		return notA(n, w), "put it into square brackets"
	default:
		if n.kind == kindObject || n.kind == kindText && n.text == "" {
			return "", ""
		}
		return notA(n, w), "put it into braces"
	}
}

func notA(n *node, w valueType) string {
	is := n.kind.String()
	if n.kind == kindBool {
		is = n.text
	}
	return mustBe(w) + ", not " + is
}

func mustBe(w valueType) string {
	return "must be " + [...]string{
		"a string", "true or false", "a number", "a whole number of 0 or more", "a list", "an object", "anything",
	}[w]
}
