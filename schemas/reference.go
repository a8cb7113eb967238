package schemas

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/core"
)

// explain returns the violations of a schema that does not compile.
func explain(err error, tree *value) *faults {
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return oneFault(pointerOf("#"+e.InstanceLocation), "schema", "is no valid schema, but is used as one")
	}
	if e, ok := errors.AsType[jsonschema.InfiniteLoopError](err); ok {
		return oneFault(loopOf(e, tree), "$ref", "refers to itself about the same value, so that no check of it would end")
	}
	l := links{known: map[string]*value{}, found: &faults{}}
	l.collect(tree, documentURL, "")
	l.judge()
	if len(l.found.list) > 0 {
		return l.found
	}
	return oneFault("", "schema", "does not compile: one of its $id, $anchor or $ref is not understood")
}

// loopOf returns the pointer to the schema that a loop leads back to: the error names the way to it.
func loopOf(e jsonschema.InfiniteLoopError, tree *value) string {
	pointer := ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointerOf(string(e)), "/"), "/") {
		schema := tree
		if pointer != "" {
			schema = at(tree, pointer)
		}
		if ref := schema.member(token); token == "$ref" && ref != nil && ref.kind == kindString {
			pointer = pointerOf(ref.text)
		} else {
			pointer += "/" + token
		}
	}
	return pointer
}

// links are the references of a schema, to tell which of them lead nowhere.
type links struct {
	// known are the parts of the schema that have a URL.
	known map[string]*value
	refs  []link
	found *faults
}

type link struct {
	pointer, keyword, written, target string
	fragment                          string
}

func (l *links) collect(v *value, base, pointer string) {
	if v.kind == kindObject {
		for _, name := range []string{"$id", "id"} {
			id := v.member(name)
			if id == nil || id.kind != kindString {
				continue
			}
			base = withoutFragment(joined(base, id.text))
			if l.known[base] != nil && !strings.HasPrefix(id.text, "#") {
				l.found.add(core.Violation{
					Pointer: pointer, Keyword: "$id", Message: "has the id " + quoted(id.text) + " that another part of the schema has too",
				})
			}
		}
		if l.known[base] == nil {
			l.known[base] = v
		}
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			ref := v.member(keyword)
			if ref == nil || ref.kind != kindString {
				continue
			}
			target := joined(base, ref.text)
			l.refs = append(l.refs, link{
				pointer: pointer + "/" + keyword, keyword: keyword, written: ref.text,
				target: withoutFragment(target), fragment: pointerOf(target),
			})
		}
	}
	for i := range v.items() {
		l.collect(&v.items()[i], base, pointer+"/"+strconv.Itoa(i))
	}
	for i := range v.members() {
		m := &v.members()[i]
		l.collect(&m.value, base, string(pointerToken([]byte(pointer), m.name)))
	}
}

func (l *links) judge() {
	for _, r := range l.refs {
		message := ""
		document := l.known[r.target]
		_, path, _ := strings.Cut(r.target, "://")
		switch {
		case document == nil && strings.HasPrefix(path, metaHost):
		case document == nil:
			message = "refers to " + quoted(r.written) + ", which is not in this schema; other documents are never fetched"
		case r.fragment == "":
		case strings.HasPrefix(r.fragment, "/"):
			if at(document, r.fragment) == nil {
				message = "refers to " + quoted(r.written) + ", which does not exist"
			}
		case !anchored(document, r.fragment):
			message = "refers to " + quoted(r.written) + ", which does not exist"
		}
		if message != "" {
			l.found.add(core.Violation{Pointer: r.pointer, Message: message, Keyword: r.keyword})
		}
	}
}

// at gives what a JSON pointer leads to, nil when that is nothing.
func at(v *value, pointer string) *value {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = unescape.Replace(token)
		if v.kind == kindObject {
			v = v.member(token)
		} else if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v.items()) {
			v = &v.items()[i]
		} else {
			v = nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

// anchored tells whether a part of v has an anchor.
func anchored(v *value, anchor string) bool {
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.member(name); a != nil && a.text == anchor {
			return true
		}
	}
	for _, name := range []string{"$id", "id"} {
		if a := v.member(name); a != nil && strings.HasSuffix(a.text, "#"+anchor) {
			return true
		}
	}
	for i := range v.items() {
		if anchored(&v.items()[i], anchor) {
			return true
		}
	}
	for i := range v.members() {
		if anchored(&v.members()[i].value, anchor) {
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
