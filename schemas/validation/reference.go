package validation

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// explain returns the violations of a schema that does not compile.
func explain(err error, tree *jsontree.Value) *violation.List {
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return violation.NewList(pointerOf("#"+e.InstanceLocation), "schema", "is used as a schema, but is not a valid one")
	}
	if e, ok := errors.AsType[jsonschema.InfiniteLoopError](err); ok {
		return violation.NewList(loopOf(e, tree), "$ref", "refers to itself for the same value, so that a check would never end")
	}
	l := links{known: map[string]*jsontree.Value{}, found: &violation.List{}}
	l.collect(tree, documentURL, "")
	l.check()
	if len(l.found.Violations) > 0 {
		return l.found
	}
	return violation.NewList("", "schema", "does not compile: one of its $id, $anchor or $ref is not supported")
}

// loopOf returns the pointer to the schema that a loop leads back to, from the path in the error.
func loopOf(e jsonschema.InfiniteLoopError, tree *jsontree.Value) string {
	pointer := ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointerOf(string(e)), "/"), "/") {
		schema := tree
		if pointer != "" {
			schema = at(tree, pointer)
		}
		if ref := schema.Member(token); token == "$ref" && ref != nil && ref.Kind == jsontree.KindString {
			pointer = pointerOf(ref.Text)
		} else {
			pointer += "/" + token
		}
	}
	return pointer
}

// links are the references of a schema, to find unresolved ones.
type links struct {
	// known are the parts of the schema that have a URL.
	known map[string]*jsontree.Value
	refs  []link
	found *violation.List
}

type link struct {
	pointer, keyword, written, target string
	fragment                          string
}

func (l *links) collect(v *jsontree.Value, base, pointer string) {
	if v.Kind == jsontree.KindObject {
		for _, name := range []string{"$id", "id"} {
			id := v.Member(name)
			if id == nil || id.Kind != jsontree.KindString {
				continue
			}
			base = withoutFragment(joined(base, id.Text))
			if l.known[base] != nil && !strings.HasPrefix(id.Text, "#") {
				l.found.Add(core.Violation{
					Pointer: pointer, Keyword: "$id", Message: "has the id " + violation.Quoted(id.Text) + " that another part of the schema has too",
				})
			}
		}
		if l.known[base] == nil {
			l.known[base] = v
		}
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref := v.Member(keyword)
			if ref == nil || ref.Kind != jsontree.KindString {
				continue
			}
			target := joined(base, ref.Text)
			l.refs = append(l.refs, link{
				pointer: pointer + "/" + keyword, keyword: keyword, written: ref.Text,
				target: withoutFragment(target), fragment: pointerOf(target),
			})
		}
	}
	for i := range v.Items() {
		l.collect(&v.Items()[i], base, pointer+"/"+strconv.Itoa(i))
	}
	for i := range v.Members() {
		m := &v.Members()[i]
		l.collect(&m.Value, base, jsontext.Pointer(pointer, m.Name))
	}
}

func (l *links) check() {
	for _, r := range l.refs {
		message := ""
		document := l.known[r.target]
		_, path, _ := strings.Cut(r.target, "://")
		switch {
		case document == nil && strings.HasPrefix(path, metaHost):
		case document == nil:
			message = "refers to " + violation.Quoted(r.written) + ", which is not in this schema; other documents are never fetched"
		case r.fragment == "":
		case strings.HasPrefix(r.fragment, "/"):
			if at(document, r.fragment) == nil {
				message = "refers to " + violation.Quoted(r.written) + ", which does not exist"
			}
		case !anchored(document, r.fragment):
			message = "refers to " + violation.Quoted(r.written) + ", which does not exist"
		}
		if message != "" {
			l.found.Add(core.Violation{Pointer: r.pointer, Message: message, Keyword: r.keyword})
		}
	}
}

// at resolves a JSON pointer, nil if it does not exist.
func at(v *jsontree.Value, pointer string) *jsontree.Value {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = unescape.Replace(token)
		if v.Kind == jsontree.KindObject {
			v = v.Member(token)
		} else if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.Items()) {
			v = &v.Items()[i]
		} else {
			v = nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

// anchored reports whether a part of v has an anchor.
func anchored(v *jsontree.Value, anchor string) bool {
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.Member(name); a != nil && a.Text == anchor {
			return true
		}
	}
	for _, name := range []string{"$id", "id"} {
		if a := v.Member(name); a != nil && strings.HasSuffix(a.Text, "#"+anchor) {
			return true
		}
	}
	for i := range v.Items() {
		if anchored(&v.Items()[i], anchor) {
			return true
		}
	}
	for i := range v.Members() {
		if anchored(&v.Members()[i].Value, anchor) {
			return true
		}
	}
	return false
}

func joined(base, reference string) string {
	b, err := url.Parse(base)
	if err != nil {
		return reference
	}
	r, err := b.Parse(reference)
	if err != nil {
		return reference
	}
	return r.String()
}

func withoutFragment(u string) string {
	before, _, _ := strings.Cut(u, "#")
	return before
}
