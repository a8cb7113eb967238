package validation

import (
	"errors"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// preparation rewrites a schema for the library, where the library behaves differently from CONTRACT section 7:
//   - Expressions that the library must not compile are moved to regexKeyword.
//   - false as additionalProperties or additionalItems becomes nothing, so that each property or item is one violation.
//   - contentEncoding, contentMediaType and regexProperties are omitted: the first two are annotations here, and regexProperties
//     is a keyword of the library only.
type preparation struct {
	text        string
	version     int
	expressions *expressions
	// anchors are the pointers to the schema's anchors by URL, to find duplicates.
	anchors map[string]string
	found   *violation.List
	// tooLarge is true when an expression must not even be compiled to see whether it is valid.
	tooLarge bool
}

// nothing is a schema that is equivalent to false; anything is the format by which failures of its parts are recognized.
const (
	nothing  = `{"not":{"format":"` + anything + `"}}`
	anything = "tutti:anything"
)

// schema writes a schema, and adds the violations of its expressions and anchors to p.found.
func (p *preparation) schema(dst []byte, v *jsontree.Value, pointer, base string) []byte {
	switch {
	case v.Kind == jsontree.KindArray:
		return p.list(dst, v, pointer, base)
	case v.Kind != jsontree.KindObject:
		return append(dst, p.text[v.From:v.To]...)
	}
	base = p.identify(v, pointer, base)
	moved := p.moved(v, pointer)
	dst = append(dst, '{')
	first := true
	for i := range v.Members() {
		m := &v.Members()[i]
		if p.dropped(m, moved) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsontree.AppendString(dst, m.Name), ':')
		dst = p.keyword(dst, m, string(jsontree.PointerToken([]byte(pointer), m.Name)), base)
	}
	if moved != nil {
		if !first {
			dst = append(dst, ',')
		}
		dst = p.regexes(append(append(dst, '"'), regexKeyword+`":{`...), v, moved, pointer, base)
	}
	return append(dst, '}')
}

// dropped reports whether a member of a schema is omitted or moved to regexKeyword.
func (p *preparation) dropped(m *jsontree.Member, moved map[string]bool) bool {
	switch m.Name {
	case regexKeyword, "regexProperties":
		return true
	case "contentEncoding", "contentMediaType":
		return m.Value.Kind == jsontree.KindString
	default:
		return moved[m.Name]
	}
}

func (p *preparation) list(dst []byte, v *jsontree.Value, pointer, base string) []byte {
	dst = append(dst, '[')
	for i := range v.Items() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(dst, &v.Items()[i], pointer+"/"+strconv.Itoa(i), base)
	}
	return append(dst, ']')
}

// keyword writes the value of a keyword.
func (p *preparation) keyword(dst []byte, m *jsontree.Member, pointer, base string) []byte {
	switch m.Name {
	case "const", "enum", "default", "examples":
		return append(dst, p.text[m.Value.From:m.Value.To]...)
	case "additionalProperties", "additionalItems":
		if m.Value.Kind == jsontree.KindBool && m.Value.Text == "false" {
			return append(dst, nothing...)
		}
	case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies":
		if m.Value.Kind == jsontree.KindObject {
			return p.named(dst, &m.Value, pointer, base)
		}
	}
	return p.schema(dst, &m.Value, pointer, base)
}

// named writes schemas by their names.
func (p *preparation) named(dst []byte, v *jsontree.Value, pointer, base string) []byte {
	dst = append(dst, '{')
	for i := range v.Members() {
		m := &v.Members()[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(append(jsontree.AppendString(dst, m.Name), ':'), &m.Value, string(jsontree.PointerToken([]byte(pointer), m.Name)), base)
	}
	return append(dst, '}')
}

// identify notes the anchors of a schema and returns its base URL.
func (p *preparation) identify(v *jsontree.Value, pointer, base string) string {
	for _, name := range []string{"$id", "id"} {
		if id := v.Member(name); id != nil && id.Kind == jsontree.KindString {
			base = withoutFragment(joined(base, id.Text))
			if p.version < 2019 && strings.HasPrefix(id.Text, "#") {
				p.anchor(base+id.Text, id.Text[1:], pointer)
			}
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor := v.Member(keyword); p.version >= 2019 && anchor != nil && anchor.Kind == jsontree.KindString {
			p.anchor(base+"#"+anchor.Text, anchor.Text, pointer)
		}
	}
	return base
}

func (p *preparation) anchor(url, name, pointer string) {
	if other, known := p.anchors[url]; known && other != pointer {
		p.found.Add(core.Violation{
			Pointer: pointer, Keyword: "$anchor", Message: "has the anchor " + violation.Quoted(name) + " that another part of the schema has too",
		})
	}
	p.anchors[url] = pointer
}

// moved checks the expressions of a schema and returns the keywords that are moved to regexKeyword, nil when there is none.
func (p *preparation) moved(v *jsontree.Value, pointer string) map[string]bool {
	var moved map[string]bool
	move := func(names ...string) {
		if moved == nil {
			moved = map[string]bool{}
		}
		for _, name := range names {
			moved[name] = true
		}
	}
	if pattern := v.Member("pattern"); pattern != nil && pattern.Kind == jsontree.KindString {
		compiled, err := p.expressions.compile(pattern.Text)
		p.reportInvalid(err, pointer+"/pattern", "format", "")
		if err != nil || !compiled.native() {
			move("pattern")
		}
	}
	if patterns := v.Member("patternProperties"); patterns != nil && patterns.Kind == jsontree.KindObject {
		for i := range patterns.Members() {
			name := patterns.Members()[i].Name
			compiled, err := p.expressions.compile(name)
			if p.version == 4 {
				p.reportInvalid(err, pointer+"/patternProperties", "pattern", ": "+violation.Quoted(name))
			} else {
				p.reportInvalid(err, string(jsontree.PointerToken([]byte(pointer+"/patternProperties"), name)), "propertyNames", "")
			}
			if err != nil || !compiled.native() {
				move("patternProperties", "additionalProperties")
			}
		}
	}
	return moved
}

// reportInvalid adds the violation of an invalid expression.
func (p *preparation) reportInvalid(err error, pointer, keyword, shown string) {
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
	p.found.Add(core.Violation{Pointer: pointer, Message: message + shown, Keyword: keyword})
}

// regexes writes the value of regexKeyword after its opening brace.
func (p *preparation) regexes(dst []byte, v *jsontree.Value, moved map[string]bool, pointer, base string) []byte {
	var parts []string
	if moved["pattern"] {
		parts = append(parts, `"pattern":`+string(jsontree.AppendString(nil, v.Member("pattern").Text)))
	}
	if moved["patternProperties"] {
		var patterns []string
		members := v.Member("patternProperties").Members()
		for i := range members {
			at := string(jsontree.PointerToken([]byte(pointer+"/patternProperties"), members[i].Name))
			patterns = append(patterns, `{"pattern":`+string(jsontree.AppendString(nil, members[i].Name))+`,"schema":`+
				string(p.schema(nil, &members[i].Value, at, base))+`}`)
		}
		parts = append(parts, `"patterns":[`+strings.Join(patterns, ",")+`]`)
		if additional := v.Member("additionalProperties"); additional != nil {
			parts = append(parts, `"additionalProperties":`+
				string(p.keyword(nil, &jsontree.Member{Name: "additionalProperties", Value: *additional}, pointer+"/additionalProperties", base)))
		}
	}
	return append(append(dst, strings.Join(parts, ",")...), '}')
}
