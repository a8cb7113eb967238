package pattern

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tutti/internal/base/order"
)

// set is a set of characters: sorted ranges that neither overlap nor touch. An empty one is not nil.
type set []runeRange

type runeRange struct{ low, high rune }

// newSet returns the set of any ranges, without surrogates: no text contains one.
func newSet(ranges ...runeRange) set {
	const firstSurrogate, lastSurrogate = 0xD800, 0xDFFF
	var parts []runeRange
	for _, r := range ranges {
		if r.low < firstSurrogate && r.high >= firstSurrogate {
			parts = append(parts, runeRange{r.low, firstSurrogate - 1})
			r.low = firstSurrogate
		}
		if r.low >= firstSurrogate && r.low <= lastSurrogate {
			r.low = lastSurrogate + 1
		}
		if r.low <= r.high {
			parts = append(parts, r)
		}
	}
	order.Sort(parts, func(a, b runeRange) int { return int(a.low - b.low) })
	all := set{}
	for _, r := range parts {
		if n := len(all); n > 0 && r.low <= all[n-1].high+1 {
			all[n-1].high = max(all[n-1].high, r.high)
		} else {
			all = append(all, r)
		}
	}
	return all
}

func (s set) complement() set {
	var gaps []runeRange
	low := rune(0)
	for _, r := range s {
		gaps = append(gaps, runeRange{low, r.low - 1})
		low = r.high + 1
	}
	return newSet(append(gaps, runeRange{low, unicode.MaxRune})...)
}

// text writes the set for either engine.
func (s set) text() string {
	if len(s) == 0 {
		return `(?:\z\A.)` // matches nothing in either engine
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, r := range s {
		writeClassRune(&b, r.low)
		if r.high > r.low {
			b.WriteByte('-')
			writeClassRune(&b, r.high)
		}
	}
	b.WriteByte(']')
	return b.String()
}

func writeClassRune(b *strings.Builder, r rune) {
	if strings.ContainsRune(`\]^[-&~`, r) {
		b.WriteByte('\\')
	}
	b.WriteRune(r)
}

func lineTerminators() set {
	return newSet(runeRange{'\n', '\n'}, runeRange{'\r', '\r'}, runeRange{0x2028, 0x2029})
}

func wordChars() set {
	return newSet(runeRange{'a', 'z'}, runeRange{'A', 'Z'}, runeRange{'0', '9'}, runeRange{'_', '_'})
}

// spaces are WhiteSpace and LineTerminator of ECMA-262.
func spaces() set {
	return newSet(slices.Concat(tables(unicode.Zs), lineTerminators(), set{{'\t', '\t'}, {'\v', '\f'}, {0xFEFF, 0xFEFF}})...)
}

// class reads a class after its opening bracket.
func (p *parser) class() {
	negated := p.take("^")
	ranges := []runeRange{}
	for {
		if !p.more() {
			p.refuse("it has a [ without a ]")
			return
		}
		if p.take("]") {
			break
		}
		low, one := p.classAtom()
		if p.err != nil {
			return
		}
		if p.next() != '-' || strings.HasPrefix(p.text[p.pos:], "-]") {
			ranges = append(ranges, orOne(low, one)...)
			continue
		}
		p.pos++
		high, last := p.classAtom()
		switch {
		case p.err != nil:
			return
		case low != nil || high != nil: // annex B: no range
			ranges = slices.Concat(ranges, orOne(low, one), orOne(high, last), set{{'-', '-'}})
		case last < one:
			p.refuse("it has the range " + strconv.Quote(string(one)+"-"+string(last)) + ", which is out of order")
			return
		default:
			ranges = append(ranges, runeRange{one, last})
		}
	}
	s := newSet(ranges...)
	if negated {
		s = s.complement()
	}
	p.emit(s.text())
}

// orOne returns the ranges of a set, or of one character if the set is nil.
func orOne(s set, one rune) set {
	if s == nil {
		return set{{one, one}}
	}
	return s
}

// classAtom reads a part of a class: a set, or one character.
func (p *parser) classAtom() (set, rune) {
	if !p.more() {
		p.refuse("it has a [ without a ]")
		return nil, 0
	}
	c := p.char()
	if c == '[' {
		for _, kind := range []string{":", ".", "="} {
			if strings.HasPrefix(p.text[p.pos:], kind) && strings.Contains(p.text[p.pos+1:], kind+"]") {
				p.refuse(`it has a class of POSIX, such as [:alpha:], which ECMA-262 does not know; name the characters, or use \p{L}`)
			}
		}
		p.nested = true
	}
	if c != '\\' {
		return nil, c
	}
	switch {
	case p.take("b"):
		return nil, '\b'
	case p.take("-"):
		return nil, '-'
	}
	return p.classEscape()
}

// classEscape reads an escape, after its backslash, that may stand in a class: a set, or one character.
func (p *parser) classEscape() (set, rune) {
	if !p.more() {
		p.refuse(`it ends with a \`)
		return nil, 0
	}
	switch c := p.char(); c {
	case 'd':
		return set{{'0', '9'}}, 0
	case 'D':
		return set{{'0', '9'}}.complement(), 0
	case 'w':
		return wordChars(), 0
	case 'W':
		return wordChars().complement(), 0
	case 's':
		return spaces(), 0
	case 'S':
		return spaces().complement(), 0
	case 'p', 'P':
		return p.property(c == 'P'), 0
	default:
		return nil, p.charEscape(c)
	}
}

// charEscape returns the character of an escape that begins with c.
func (p *parser) charEscape(c rune) rune {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'v':
		return '\v'
	case 'f':
		return '\f'
	case 'r':
		return '\r'
	case 'c':
		if letter := p.next() | 0x20; letter >= 'a' && letter <= 'z' {
			p.pos++
			return rune(letter % 32)
		}
		p.refuse(`it has a \c without a letter`)
	case '0':
		if next := p.next(); next >= '0' && next <= '9' {
			p.refuse(`it has an octal escape, which ECMA-262 does not know; use \x or \u`)
		}
		return 0
	case 'x':
		return p.hex(2)
	case 'u':
		return p.unicodeEscape()
	default:
		if c < utf8.RuneSelf && (c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
			p.refuse(`it has \` + string(c) + ", which ECMA-262 does not know" + hintFor(c))
		}
		return c
	}
	return 0
}

// hintFor returns what to write instead of an escape of other dialects.
func hintFor(c rune) string {
	switch c {
	case 'A':
		return "; the begin of a text is ^"
	case 'z', 'Z':
		return "; the end of a text is $"
	case 'Q', 'E':
		return "; escape each character"
	case 'a', 'e':
		return `; use \x`
	case 'h', 'R':
		return `; name the characters, or use \s`
	default:
		return ""
	}
}

// hex reads a number of hexadecimal digits.
func (p *parser) hex(digits int) rune {
	if p.pos+digits <= len(p.text) {
		if n, err := strconv.ParseUint(p.text[p.pos:p.pos+digits], 16, 32); err == nil {
			p.pos += digits
			return rune(n)
		}
	}
	p.refuse(`it has a \x or \u without its hexadecimal digits`)
	return 0
}

// unicodeEscape reads the rest of a \u.
func (p *parser) unicodeEscape() rune {
	if p.take("{") {
		digits, _, _ := strings.Cut(p.text[p.pos:], "}")
		n, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || n > unicode.MaxRune {
			p.refuse(`it has a \u{…} that is no character`)
			return 0
		}
		p.pos += len(digits) + 1
		return p.character(rune(n))
	}
	high := p.hex(4)
	if p.err == nil && high >= 0xD800 && high < 0xDC00 && p.take(`\u`) {
		if low := p.hex(4); low >= 0xDC00 && low < 0xE000 {
			return (high-0xD800)<<10 + low - 0xDC00 + 0x10000
		}
	}
	return p.character(high)
}

// character refuses half of a character.
func (p *parser) character(r rune) rune {
	if !utf8.ValidRune(r) {
		p.refuse(`it has a single surrogate, which no text contains; write the whole character`)
	}
	return r
}

// property reads the rest of a \p or \P.
func (p *parser) property(negated bool) set {
	name, _, ok := strings.Cut(strings.TrimPrefix(p.text[p.pos:], "{"), "}")
	if p.next() != '{' || !ok {
		p.refuse(`it has a \p without its {name}`)
		return nil
	}
	p.pos += len(name) + len("{}")
	s := propertySet(name)
	if s == nil {
		p.refuse(`it has \p{` + name + `}, which is not a property of Unicode that is supported`)
		return nil
	}
	if negated {
		return s.complement()
	}
	return s
}

// propertySet returns the characters of a property, nil for an unknown one: general categories, scripts, and the binary properties for
// which Go has tables.
func propertySet(name string) set {
	kind, value, ok := strings.Cut(name, "=")
	switch {
	case ok && (kind == "Script" || kind == "sc"):
		if table := unicode.Scripts[value]; table != nil {
			return newSet(tables(table)...)
		}
		return nil
	case ok && (kind == "General_Category" || kind == "gc"):
		return categorySet(value)
	case ok:
		return nil
	}
	switch name {
	case "Any":
		return set{}.complement()
	case "ASCII":
		return set{{0, 0x7F}}
	case "Assigned":
		return categorySet("Cn").complement()
	case "Alphabetic", "Alpha":
		return newSet(tables(unicode.L, unicode.Nl, unicode.Other_Alphabetic)...)
	case "Lowercase", "Lower":
		return newSet(tables(unicode.Ll, unicode.Other_Lowercase)...)
	case "Uppercase", "Upper":
		return newSet(tables(unicode.Lu, unicode.Other_Uppercase)...)
	case "White_Space", "space":
		return newSet(tables(unicode.White_Space)...)
	}
	if s := categorySet(name); s != nil {
		return s
	}
	if table := unicode.Properties[name]; table != nil && !strings.HasPrefix(name, "Other_") {
		return newSet(tables(table)...)
	}
	return nil
}

// categorySet returns the characters of a general category, by its short or its long name.
func categorySet(name string) set {
	if short, ok := unicode.CategoryAliases[name]; ok {
		name = short
	}
	table := unicode.Categories[name]
	if table == nil {
		return nil
	}
	return newSet(tables(table)...)
}

// tables returns the ranges of tables of Unicode.
func tables(all ...*unicode.RangeTable) []runeRange {
	var ranges []runeRange
	add := func(low, high, stride rune) {
		if stride == 1 {
			ranges = append(ranges, runeRange{low, high})
			return
		}
		for r := low; r <= high; r += stride {
			ranges = append(ranges, runeRange{r, r})
		}
	}
	for _, table := range all {
		for _, r := range table.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return ranges
}
