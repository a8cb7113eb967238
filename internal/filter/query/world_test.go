package query_test

import (
	"fmt"
	"slices"
	"strings"

	"tutti/internal/filter/query"
	"tutti/internal/filter/sqon"
)

// world is the Fields of a small catalogue: each name is its path.
type world struct{}

func (world) types() map[string]string {
	return map[string]string{
		"studyId": "keyword", "title": "text", "ok": "boolean", "at": "date", "seen": "date_nanos", "age": "integer",
		"weight": "float", "address": "ip", "place": "geo_point", "donor": "object", "donor.sex": "keyword", "donor.age": "long",
		"files": "nested", "files.type": "keyword", "files.size": "long", "files.at": "date", "files.info": "object",
		"files.info.note": "keyword", "files.index": "nested", "files.index.size": "long", "samples": "nested", "samples.id": "keyword",
		"empty": "object",
	}
}

func (w world) nested(name string) []string {
	var above []string
	for _, path := range []string{"files", "files.index", "samples"} {
		if name == path || strings.HasPrefix(name, path+".") {
			above = append(above, path)
		}
	}
	return above
}

func (w world) Field(name string) (sqon.Field, bool) {
	if name == "study" { // an alias
		name = "studyId"
	}
	t, ok := w.types()[name]
	return sqon.Field{Type: t, Nested: w.nested(name)}, ok
}

func (w world) Lookup(name string) (query.Field, bool) {
	if name == "study" {
		name = "studyId"
	}
	t, ok := w.types()[name]
	if !ok || t == "object" || t == "nested" {
		return query.Field{}, false
	}
	return query.Field{Path: name, Type: t, Nested: w.nested(name)}, true
}

func (w world) NestedPath(name string) (string, bool) { return name, w.types()[name] == "nested" }

func (w world) Leaves(name string) []query.Field {
	var leaves []query.Field
	for other := range w.types() {
		if f, ok := w.Lookup(other); ok && strings.HasPrefix(other, name+".") {
			leaves = append(leaves, f)
		}
	}
	slices.SortFunc(leaves, func(a, b query.Field) int { return strings.Compare(a.Path, b.Path) })
	return leaves
}

// show renders a tree in one line.
func show(n *query.Node) string {
	if n == nil {
		return "all"
	}
	members := make([]string, len(n.Children))
	for i, child := range n.Children {
		members[i] = show(child)
	}
	inside := strings.Join(members, ", ")
	switch n.Op {
	case query.Everything:
		return "everything"
	case query.Nothing:
		return "nothing"
	case query.And:
		return "and(" + inside + ")"
	case query.Or:
		return "or(" + inside + ")"
	case query.Not:
		return "not(" + inside + ")"
	case query.Some:
		return "some " + n.Path + "(" + inside + ")"
	case query.Terms:
		return n.Field.Path + strings.ReplaceAll(fmt.Sprintf("%q", n.Terms), `"`, "'")
	case query.Patterns:
		fold := ""
		if n.Fold {
			fold = "~"
		}
		return n.Field.Path + fold + strings.ReplaceAll(fmt.Sprintf("%q", n.Patterns), `"`, "'")
	case query.Exists:
		return n.Field.Path + "?"
	default:
		return n.Field.Path + edgeText("[(", n.From) + ".." + edgeText("])", n.To)
	}
}

func edgeText(brackets string, b query.Bound) string {
	if !b.Set {
		return ""
	}
	bracket := brackets[1:]
	if b.Inclusive {
		bracket = brackets[:1]
	}
	text := b.Number
	if text == "" {
		text = b.Time.Format("2006-01-02T15:04:05.999999999")
	}
	if brackets[0] == '[' {
		return bracket + text
	}
	return text + bracket
}
