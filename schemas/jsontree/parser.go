package jsontree

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
	"tutti/schemas/violation"
)

// Limits of a JSON text; a text over one of them is not parsed.
const (
	// maxDepth bounds the nesting of arrays and objects.
	maxDepth = 256
	// maxValues bounds the memory of a parsed text.
	maxValues = 1_000_000
	// maxNumberLength and maxExponent bound the work of exact arithmetic.
	maxNumberLength = 512
	maxExponent     = 400
)

// Parse reads one JSON text (RFC 8259). It rejects texts that parsers read differently: two members of one name, bytes
// that are not UTF-8, numbers outside of the range of float64. The error's text is safe to show.
func Parse(text string) (Value, error) {
	if !utf8.ValidString(text) {
		return Value{}, errors.New("it is not UTF-8")
	}
	p := parser{text: text}
	v, err := p.value(0)
	if err == nil {
		if p.next(); p.at < len(text) {
			err = p.syntaxError("text follows the JSON value")
		}
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

type parser struct {
	// members and items are those of the objects and arrays that are not read to their end.
	members []Member
	items   []Value
	text    string
	at      int
	values  int
}

func (p *parser) syntaxError(what string) error {
	before := p.text[:min(p.at, len(p.text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("%s at line %d, column %d", what, line, column)
}

// next skips white space and returns the byte that follows, 0 at the end.
func (p *parser) next() byte {
	for ; p.at < len(p.text); p.at++ {
		if c := p.text[p.at]; !jsontext.IsSpace(c) {
			return c
		}
	}
	return 0
}

func (p *parser) value(depth int) (Value, error) {
	if p.values++; p.values > maxValues {
		return Value{}, fmt.Errorf("it contains more than %d values", maxValues)
	}
	c := p.next()
	v := Value{From: uint32(p.at)}
	var err error
	switch {
	case c == '{' || c == '[':
		if depth == maxDepth {
			return Value{}, fmt.Errorf("it is nested more than %d levels deep", maxDepth)
		}
		p.at++
		if c == '{' {
			v.Kind = KindObject
			v.parts, err = p.object(depth)
		} else {
			v.Kind = KindArray
			v.parts, err = p.array(depth)
		}
	case c == '"':
		v.Kind = KindString
		v.Text, err = p.string()
	case c == '-' || '0' <= c && c <= '9':
		v.Kind = KindNumber
		v.Text, err = p.number()
	case p.word("true") || p.word("false"):
		v.Kind, v.Text = KindBool, p.text[v.From:p.at]
	case p.word("null"):
		v.Kind = KindNull
	case p.at >= len(p.text):
		err = p.syntaxError("the text ends where a value is expected")
	default:
		err = p.syntaxError("no JSON value begins")
	}
	v.To = uint32(p.at)
	return v, err
}

func (p *parser) word(w string) bool {
	if !strings.HasPrefix(p.text[p.at:], w) {
		return false
	}
	p.at += len(w)
	return true
}

func (p *parser) object(depth int) (*parts, error) {
	if p.next() == '}' {
		p.at++
		return nil, nil
	}
	all, first := &parts{}, len(p.members)
	for {
		if p.next() != '"' {
			return nil, p.syntaxError("the name of a member is missing")
		}
		start := p.at
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.syntaxError("a colon is missing")
		}
		p.at++
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all.members = p.members[first:]
		if all.find(name) >= 0 {
			p.at = start
			return nil, p.syntaxError("the member " + violation.Quoted(name) + " occurs twice in one object")
		}
		p.members = append(p.members, Member{name, v})
		all.indexLast(p.members[first:])
		switch p.next() {
		case ',':
			p.at++
		case '}':
			p.at++
			all.members = slices.Clone(p.members[first:])
			p.members = p.members[:first]
			return all, nil
		default:
			return nil, p.syntaxError("a comma or a closing brace is missing")
		}
	}
}

func (p *parser) array(depth int) (*parts, error) {
	if p.next() == ']' {
		p.at++
		return nil, nil
	}
	first := len(p.items)
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		p.items = append(p.items, v)
		switch p.next() {
		case ',':
			p.at++
		case ']':
			p.at++
			all := &parts{items: slices.Clone(p.items[first:])}
			p.items = p.items[:first]
			return all, nil
		default:
			return nil, p.syntaxError("a comma or a closing bracket is missing")
		}
	}
}

// string reads a string whose opening quote is next.
func (p *parser) string() (string, error) {
	end, escaped, state := jsontext.ScanString(p.text, p.at)
	switch {
	case state == jsontext.Incomplete:
		return "", p.syntaxError("a string has no closing quote")
	case state == jsontext.Invalid && p.text[end] == '\\':
		return "", p.syntaxError("a string has an escape sequence that JSON does not have")
	case state == jsontext.Invalid:
		p.at = end
		return "", p.syntaxError("a string has a control character that is not escaped")
	}
	inside := p.text[p.at+1 : end-1]
	p.at = end
	if escaped {
		return jsontext.Unescape(inside), nil
	}
	return inside, nil
}

func (p *parser) number() (string, error) {
	end, _, state := jsontext.ScanNumber(p.text, p.at)
	literal := p.text[p.at:end]
	switch {
	case state != jsontext.Valid:
		return "", p.syntaxError("a number is not in the form that JSON requires")
	case !inRange(literal):
		return "", p.syntaxError("a number is too large, too small or too long")
	default:
		p.at = end
		return literal, nil
	}
}

// inRange reports whether a number fits in a float64 and exact arithmetic with it is fast.
func inRange(literal string) bool {
	if len(literal) > maxNumberLength {
		return false
	}
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		if e, err := strconv.Atoi(literal[at+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return false
		}
	} else if len(literal) <= 15 {
		return true
	}
	_, err := strconv.ParseFloat(literal, 64)
	return err == nil
}
