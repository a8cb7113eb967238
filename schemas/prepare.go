package schemas

import (
	"errors"
	"strings"

	"tutti/internal/core"
)

// preparation writes a schema as the library gets it. What the library does differently from what a registration promises,
// is written in other words:
//   - Expressions that the library must not compile are moved to regexKeyword.
//   - false as additionalProperties or additionalItems becomes nothing, so that each property or item is one violation.
//   - contentEncoding and contentMediaType are annotations here, and regexProperties is a keyword of the library alone.
type preparation struct {
	text        string
	version     int
	expressions *expressions
	// anchors are the pointers to those of the schema by their URL, to find what is there twice.
	anchors map[string]string
	found   *faults
	// tooLarge is true when an expression must not even be compiled to see whether it is valid.
	tooLarge bool
}

// nothing is false in other words; anything is the format that its parts are known by.
const (
	nothing  = `{"not":{"format":"` + anything + `"}}`
	anything = "tutti:anything"
)

// schema writes a schema; what is wrong with its expressions and its anchors goes to p.found.
func (p *preparation) schema(dst []byte, v *value, pointer, base string) []byte {
	switch {
	case v.kind == kindArray:
		return p.list(dst, v, pointer, base)
	case v.kind != kindObject:
		return append(dst, p.text[v.from:v.to]...)
	}
	base = p.identify(v, pointer, base)
	moved := p.moved(v, pointer)
	dst = append(dst, '{')
	first := true
	for i := range v.members() {
		m := &v.members()[i]
		if p.dropped(m, moved) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, m.name), ':')
		dst = p.keyword(dst, m, string(pointerToken([]byte(pointer), m.name)), base)
	}
	if moved != nil {
		if !first {
			dst = append(dst, ',')
		}
		dst = p.regexes(append(append(dst, '"'), regexKeyword+`":{`...), v, moved, pointer, base)
	}
	return append(dst, '}')
}

// dropped reports whether the library does not get a member of a schema under its own name.
func (p *preparation) dropped(m *member, moved map[string]bool) bool {
	switch m.name {
	case regexKeyword, "regexProperties":
		return true
	case "contentEncoding", "contentMediaType":
		return m.value.kind == kindString
	default:
		return moved[m.name]
	}
}

func (p *preparation) list(dst []byte, v *value, pointer, base string) []byte {
	dst = append(dst, '[')
	for i := range v.items() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(dst, &v.items()[i], pointer+"/"+decimal(i), base)
	}
	return append(dst, ']')
}

// keyword writes the value of a keyword.
func (p *preparation) keyword(dst []byte, m *member, pointer, base string) []byte {
	switch m.name {
	case "const", "enum", "default", "examples":
		return append(dst, p.text[m.value.from:m.value.to]...)
	case "additionalProperties", "additionalItems":
		if m.value.kind == kindBool && m.value.text == "false" {
			return append(dst, nothing...)
		}
	case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
		if m.value.kind == kindObject {
			return p.named(dst, &m.value, pointer, base)
		}
	}
	return p.schema(dst, &m.value, pointer, base)
}

// named writes schemas by their names.
func (p *preparation) named(dst []byte, v *value, pointer, base string) []byte {
	dst = append(dst, '{')
	for i := range v.members() {
		m := &v.members()[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(append(appendString(dst, m.name), ':'), &m.value, string(pointerToken([]byte(pointer), m.name)), base)
	}
	return append(dst, '}')
}

// identify notes the anchors of a schema and returns its base URL.
func (p *preparation) identify(v *value, pointer, base string) string {
	for _, name := range []string{"$id", "id"} {
		if id := v.member(name); id != nil && id.kind == kindString {
			base = withoutFragment(joined(base, id.text))
			if p.version < 2019 && strings.HasPrefix(id.text, "#") {
				p.anchor(base+id.text, id.text[1:], pointer)
			}
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor := v.member(keyword); p.version >= 2019 && anchor != nil && anchor.kind == kindString {
			p.anchor(base+"#"+anchor.text, anchor.text, pointer)
		}
	}
	return base
}

func (p *preparation) anchor(url, name, pointer string) {
	if other, known := p.anchors[url]; known && other != pointer {
		p.found.add(core.Violation{
			Pointer: pointer, Keyword: "$anchor", Message: "has the anchor " + quoted(name) + " that another part of the schema has too",
		})
	}
	p.anchors[url] = pointer
}

// moved checks the expressions of a schema and returns the keywords that the library must not get, nil when there is none.
func (p *preparation) moved(v *value, pointer string) map[string]bool {
	var moved map[string]bool
	move := func(names ...string) {
		if moved == nil {
			moved = map[string]bool{}
		}
		for _, name := range names {
			moved[name] = true
		}
	}
	if pattern := v.member("pattern"); pattern != nil && pattern.kind == kindString {
		compiled, err := p.expressions.compile(pattern.text)
		p.refuse(err, pointer+"/pattern", "format", "")
		if err != nil || !compiled.native() {
			move("pattern")
		}
	}
	if patterns := v.member("patternProperties"); patterns != nil && patterns.kind == kindObject {
		for i := range patterns.members() {
			name := patterns.members()[i].name
			compiled, err := p.expressions.compile(name)
			if p.version == 4 {
				p.refuse(err, pointer+"/patternProperties", "pattern", ": "+quoted(name))
			} else {
				p.refuse(err, string(pointerToken([]byte(pointer+"/patternProperties"), name)), "propertyNames", "")
			}
			if err != nil || !compiled.native() {
				move("patternProperties", "additionalProperties")
			}
		}
	}
	return moved
}

// refuse notes what is wrong with an expression.
func (p *preparation) refuse(err error, pointer, keyword, shown string) {
	if err == nil {
		return
	}
	message := "is not a valid regular expression"
	if errors.Is(err, errTooLarge) {
		p.tooLarge = true
		message = err.Error()
	}
	if keyword == "propertyNames" {
		message = "its name " + message
	}
	p.found.add(core.Violation{Pointer: pointer, Message: message + shown, Keyword: keyword})
}

// regexes writes what regexKeyword holds, up to its closing brace.
func (p *preparation) regexes(dst []byte, v *value, moved map[string]bool, pointer, base string) []byte {
	var parts []string
	if moved["pattern"] {
		parts = append(parts, `"pattern":`+string(appendString(nil, v.member("pattern").text)))
	}
	if moved["patternProperties"] {
		var patterns []string
		members := v.member("patternProperties").members()
		for i := range members {
			at := string(pointerToken([]byte(pointer+"/patternProperties"), members[i].name))
			patterns = append(patterns, `{"pattern":`+string(appendString(nil, members[i].name))+`,"schema":`+
				string(p.schema(nil, &members[i].value, at, base))+`}`)
		}
		parts = append(parts, `"patterns":[`+strings.Join(patterns, ",")+`]`)
		if additional := v.member("additionalProperties"); additional != nil {
			parts = append(parts, `"additionalProperties":`+
				string(p.keyword(nil, &member{"additionalProperties", *additional}, pointer+"/additionalProperties", base)))
		}
	}
	return append(append(dst, strings.Join(parts, ",")...), '}')
}
