package validation

import (
	"errors"
	"strconv"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/schemas/jsontree"
	"tutti/schemas/pattern"
	"tutti/schemas/violation"
)

// preparation rewrites a schema for the library, where the library behaves differently from CONTRACT section 7:
//   - Regular expressions are moved to ownKeyword: they mean what ECMA-262 says, not what Go says.
//   - An empty enum, which the library ignores, is moved there too. A value that an enum has twice is written once.
//   - false as additionalProperties or additionalItems becomes nothing, so that each property or item is one violation.
//   - contentEncoding, contentMediaType and regexProperties are omitted: the first two are annotations here, and regexProperties
//     is a keyword of the library only.
type preparation struct {
	text        string
	version     int
	expressions *pattern.Set
	// anchors are the pointers to the schema's anchors by URL, to find duplicates.
	anchors map[string]string
	found   *violation.List
	// enums are the pointers to the enums that are written in another way.
	enums map[string]bool
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
		dst = p.keyword(dst, m, jsontext.Pointer(pointer, m.Name), base)
	}
	if len(moved) > 0 {
		if !first {
			dst = append(dst, ',')
		}
		dst = p.own(append(append(dst, '"'), ownKeyword+`":{`...), v, moved, pointer, base)
	}
	return append(dst, '}')
}

// dropped reports whether a member of a schema is omitted or moved to ownKeyword.
func (p *preparation) dropped(m *jsontree.Member, moved map[string]bool) bool {
	switch m.Name {
	case ownKeyword, "regexProperties":
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
	case "enum":
		return p.enum(dst, &m.Value, pointer)
	case "const", "default", "examples":
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

// enum writes the values of an enum, each once: since draft-06 they should be unique, but need not be.
func (p *preparation) enum(dst []byte, v *jsontree.Value, pointer string) []byte {
	known := map[string]bool{}
	var values []string
	for i := range v.Items() {
		text := p.text[v.Items()[i].From:v.Items()[i].To]
		if p.version == 4 || !known[text] {
			values = append(values, text)
		}
		known[text] = true
	}
	if len(values) == len(v.Items()) {
		return append(dst, p.text[v.From:v.To]...)
	}
	p.enums[pointer] = true
	return append(append(append(dst, '['), strings.Join(values, ",")...), ']')
}

// named writes schemas by their names.
func (p *preparation) named(dst []byte, v *jsontree.Value, pointer, base string) []byte {
	dst = append(dst, '{')
	for i := range v.Members() {
		m := &v.Members()[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.schema(append(jsontree.AppendString(dst, m.Name), ':'), &m.Value, jsontext.Pointer(pointer, m.Name), base)
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

// moved checks the expressions of a schema and returns the keywords that are moved to ownKeyword, nil when there is none.
func (p *preparation) moved(v *jsontree.Value, pointer string) map[string]bool {
	moved := map[string]bool{}
	if text := v.Member("pattern"); text != nil && text.Kind == jsontree.KindString {
		_, err := p.expressions.Compile(text.Text)
		p.reportInvalid(err, pointer+"/pattern", "format", "")
		moved["pattern"] = true
	}
	if patterns := v.Member("patternProperties"); patterns != nil && patterns.Kind == jsontree.KindObject {
		for i := range patterns.Members() {
			name := patterns.Members()[i].Name
			_, err := p.expressions.Compile(name)
			if p.version == 4 {
				p.reportInvalid(err, pointer+"/patternProperties", "pattern", ": "+violation.Quoted(name))
			} else {
				p.reportInvalid(err, jsontext.Pointer(pointer+"/patternProperties", name), "propertyNames", "")
			}
			moved["patternProperties"], moved["additionalProperties"] = true, true
		}
	}
	if choice := v.Member("enum"); choice != nil && choice.Kind == jsontree.KindArray && len(choice.Items()) == 0 {
		moved["enum"], p.enums[pointer+"/enum"] = true, true
	}
	return moved
}

// reportInvalid adds the violation of an invalid expression.
func (p *preparation) reportInvalid(err error, pointer, keyword, shown string) {
	if err == nil {
		return
	}
	message := expressionFault(err)
	p.tooLarge = p.tooLarge || errors.Is(err, pattern.ErrTooLarge)
	if keyword == "propertyNames" {
		message = "its name " + message
	}
	p.found.Add(core.Violation{Pointer: pointer, Message: message + shown, Keyword: keyword})
}

// expressionFault completes "the value …" with the reason why it is no regular expression.
func expressionFault(err error) string {
	if refused, ok := errors.AsType[*pattern.SyntaxError](err); ok {
		return "is not a valid regular expression: " + refused.Error()
	}
	return err.Error()
}

// own writes the value of ownKeyword after its opening brace.
func (p *preparation) own(dst []byte, v *jsontree.Value, moved map[string]bool, pointer, base string) []byte {
	var parts []string
	if moved["pattern"] {
		parts = append(parts, `"pattern":`+string(jsontree.AppendString(nil, v.Member("pattern").Text)))
	}
	if moved["patternProperties"] {
		var patterns []string
		members := v.Member("patternProperties").Members()
		for i := range members {
			at := jsontext.Pointer(pointer+"/patternProperties", members[i].Name)
			patterns = append(patterns, `{"pattern":`+string(jsontree.AppendString(nil, members[i].Name))+`,"schema":`+
				string(p.schema(nil, &members[i].Value, at, base))+`}`)
		}
		parts = append(parts, `"patterns":[`+strings.Join(patterns, ",")+`]`)
		if additional := v.Member("additionalProperties"); additional != nil {
			parts = append(parts, `"additionalProperties":`+
				string(p.keyword(nil, &jsontree.Member{Name: "additionalProperties", Value: *additional}, pointer+"/additionalProperties", base)))
		}
	}
	if moved["enum"] {
		parts = append(parts, `"nothing":true`)
	}
	return append(append(dst, strings.Join(parts, ",")...), '}')
}
