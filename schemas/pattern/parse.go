package pattern

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is returned for an expression that is refused. Its text is safe to show, and completes "the expression …".
type SyntaxError struct{ Reason string }

// Error returns the reason.
func (e *SyntaxError) Error() string { return e.Reason }

// translation is an expression for both engines.
type translation struct {
	// linear is for Go's regexp, backtracking for regexp2. linear is meaningless if look is set.
	linear, backtracking string
	// look is set for an expression with a look-around or a backreference.
	look bool
}

// scope is a group or an alternative of an expression: what decides whether a backreference finds a capture of another repetition.
type scope struct {
	parent *scope
	// repeated is set if it may match more than once, optional if it may be left out.
	repeated, optional bool
}

// reference is a backreference to the group of a number, in a scope.
type reference struct {
	group int
	in    *scope
	text  string
	// early is set if it stands before the end of its group.
	early bool
}

// parser reads an expression of ECMA-262 and writes it for both engines.
type parser struct {
	text string
	pos  int
	// linear and backtracking are the translations so far.
	linear, backtracking strings.Builder
	look                 bool
	// names are the numbers of the named groups; groups is the number of all.
	names  map[string]int
	groups int
	// closed are the scopes of the groups that were read to their end.
	opened int
	closed map[int]*scope
	refs   []reference
	in     *scope
	// nested is set after a class that contains a bracket, as only other dialects have it.
	nested bool
	err    error
}

// translate returns an expression for both engines. Errors: *SyntaxError, ErrTooLarge.
func translate(text string) (translation, error) {
	p := &parser{text: text, names: map[string]int{}, closed: map[int]*scope{}, in: &scope{}}
	p.countGroups()
	p.disjunction()
	if p.err == nil && p.pos < len(p.text) {
		p.refuse("it has a ) without a (")
	}
	for _, r := range p.refs {
		p.checkReference(r)
	}
	return translation{p.linear.String(), p.backtracking.String(), p.look}, p.err
}

func (p *parser) refuse(reason string) {
	if p.err == nil {
		p.err = &SyntaxError{reason}
	}
}

// emit writes a translation that is the same for both engines.
func (p *parser) emit(text string) { p.emitBoth(text, text) }

func (p *parser) emitBoth(linear, backtracking string) {
	p.linear.WriteString(linear)
	p.backtracking.WriteString(backtracking)
	if p.linear.Len()+p.backtracking.Len() > maxTranslated && p.err == nil {
		p.err = ErrTooLarge
	}
}

// take consumes prefix if it is next.
func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.text[p.pos:], prefix) {
		return false
	}
	p.pos += len(prefix)
	return true
}

// char consumes a character.
func (p *parser) char() rune {
	r, size := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += size
	return r
}

func (p *parser) next() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) more() bool { return p.err == nil && p.pos < len(p.text) }

// countGroups finds the groups before the expression is read, because a reference may stand before its group.
func (p *parser) countGroups() {
	class := false
	for i := 0; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c != '(' || class:
		case !strings.HasPrefix(p.text[i:], "(?"):
			p.groups++
		case strings.HasPrefix(p.text[i:], "(?<") && !strings.HasPrefix(p.text[i:], "(?<=") && !strings.HasPrefix(p.text[i:], "(?<!"):
			p.groups++
			name, _, _ := strings.Cut(p.text[i+len("(?<"):], ">")
			if p.names[name] > 0 {
				p.refuse("it has two groups named " + strconv.Quote(name))
			}
			p.names[name] = p.groups
		}
	}
}

// disjunction reads alternatives up to a closing parenthesis or the end.
func (p *parser) disjunction() {
	outer := p.in
	first := &scope{parent: outer}
	p.in = first
	for p.more() && p.next() != ')' {
		if p.take("|") {
			first.optional = true
			p.in = &scope{parent: outer, optional: true}
			p.emit("|")
			continue
		}
		p.term()
	}
	p.in = outer
}

// term reads an assertion, or an atom with its quantifier.
func (p *parser) term() {
	switch c := p.next(); c {
	case '^':
		p.pos++
		p.assertion(`\A`, `\A`)
	case '$':
		p.pos++
		p.assertion(`\z`, `\z`)
	case '(':
		p.group()
	case '*', '+', '?':
		p.refuse("it has a " + string(c) + " that repeats nothing")
	case '{':
		p.brace()
	case '[':
		p.pos++
		p.class()
		p.quantifier(nil)
	case ']':
		if p.nested {
			p.refuse("it has a class within a class, which ECMA-262 does not know; write \\[ and \\] for brackets, or name the characters")
			return
		}
		fallthrough
	default:
		p.atom()
	}
}

// assertion writes an assertion that nothing may repeat.
func (p *parser) assertion(linear, backtracking string) {
	p.emitBoth(linear, backtracking)
	if c := p.next(); c == '*' || c == '+' || c == '?' || quantifierAt(p.text[p.pos:]) != "" {
		p.refuse("it repeats an assertion")
	}
}

// brace reads a { where an atom begins: a character, unless it was meant as a quantifier.
func (p *parser) brace() {
	if q := quantifierAt(p.text[p.pos:]); q != "" {
		p.refuse("it has a " + q + " that repeats nothing")
		return
	}
	if openRange.MatchString(p.text[p.pos:]) {
		p.refuse("it has a quantifier without a least number, which ECMA-262 does not know; write {0,…}")
		return
	}
	p.atom()
}

var (
	quantifierForm = regexp.MustCompile(`^\{([0-9]+)(,([0-9]*))?\}`)
	openRange      = regexp.MustCompile(`^\{,[0-9]+\}`)
)

// quantifierAt returns the quantifier in braces with which text begins, "" if there is none.
func quantifierAt(text string) string { return quantifierForm.FindString(text) }

// quantifier reads the quantifier of the atom before it. of is the scope of a group, nil for another atom.
func (p *parser) quantifier(of *scope) {
	var repeated, optional bool
	switch c := p.next(); {
	case c == '*' || c == '+' || c == '?':
		p.pos++
		p.emit(string(c))
		repeated, optional = c != '?', c != '+'
	case quantifierAt(p.text[p.pos:]) != "":
		parts := quantifierForm.FindStringSubmatch(p.text[p.pos:])
		p.pos += len(parts[0])
		least, leastErr := strconv.ParseInt(parts[1], 10, 32)
		most, mostErr := least, error(nil)
		if parts[3] != "" {
			most, mostErr = strconv.ParseInt(parts[3], 10, 32)
		}
		if leastErr != nil || mostErr != nil {
			p.err = ErrTooLarge
			return
		}
		if most < least {
			p.refuse("it has the quantifier " + parts[0] + ", whose numbers are out of order")
			return
		}
		p.emit(parts[0])
		repeated, optional = most > 1 || parts[2] == ",", least == 0
	default:
		if openRange.MatchString(p.text[p.pos:]) {
			p.brace()
		}
		return
	}
	if of != nil {
		of.repeated, of.optional = repeated, optional
	}
	if p.next() == '+' {
		p.refuse("it has a possessive quantifier, which ECMA-262 does not know")
		return
	}
	if p.take("?") {
		p.emit("?")
	}
	if c := p.next(); c == '*' || c == '+' || c == '?' || quantifierAt(p.text[p.pos:]) != "" {
		p.refuse("it has a quantifier of a quantifier")
	}
}

// group reads a group or a look-around.
func (p *parser) group() {
	own := &scope{parent: p.in}
	look, number := false, 0
	switch {
	case p.take("(?:"):
		p.emit("(?:")
	case p.take("(?="), p.take("(?!"), p.take("(?<="), p.take("(?<!"):
		look, p.look = true, true
		begin := p.text[strings.LastIndexByte(p.text[:p.pos], '('):p.pos]
		own.optional = strings.HasSuffix(begin, "!")
		p.emit(begin)
	case p.take("(?P<"), p.take("(?'"):
		p.refuse("it has a named group in a form that ECMA-262 does not know; write (?<name>…)")
	case p.take("(?<"):
		name, _, ok := strings.Cut(p.text[p.pos:], ">")
		if !ok || !groupName.MatchString(name) {
			p.refuse("it has a group whose name is not valid")
			return
		}
		p.pos += len(name) + 1
		number = p.openGroup()
	case p.take("(?"):
		begin := p.text[p.pos-len("(?"):]
		p.refuse("it has " + begin[:min(len(begin), len("(?i"))] + ", which is not supported: flags, comments and atomic groups are not of ECMA-262")
	default:
		p.pos++
		number = p.openGroup()
	}
	outer := p.in
	p.in = own
	p.disjunction()
	p.in = outer
	if p.err != nil {
		return
	}
	if !p.take(")") {
		p.refuse("it has a ( without a )")
		return
	}
	p.emit(")")
	if look {
		if c := p.next(); c == '*' || c == '+' || c == '?' || quantifierAt(p.text[p.pos:]) != "" {
			p.refuse("it repeats an assertion")
		}
		return
	}
	p.quantifier(own)
	if number > 0 {
		p.closed[number] = own
	}
}

var groupName = regexp.MustCompile(`^[\p{L}\p{Nl}$_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}$]*$`)

// openGroup begins a group that captures and returns its number.
func (p *parser) openGroup() int {
	p.emitBoth("(?:", "(")
	p.opened++
	return p.opened
}

// atom reads a character, a dot or an escape.
func (p *parser) atom() {
	switch c := p.char(); c {
	case '.':
		p.emit(lineTerminators().complement().text())
	case '\\':
		if !p.escape() {
			return
		}
	default:
		p.emit(regexp.QuoteMeta(string(c)))
	}
	p.quantifier(nil)
}

// escape reads an escape after its backslash. It reports whether it is an atom, not an assertion.
func (p *parser) escape() bool {
	c := p.next()
	switch {
	case c == 'b' || c == 'B':
		p.pos++
		word := wordChars().text()
		at := `(?:(?<=` + word + `)(?!` + word + `)|(?<!` + word + `)(?=` + word + `))`
		if c == 'B' {
			at = `(?:(?<=` + word + `)(?=` + word + `)|(?<!` + word + `)(?!` + word + `))`
		}
		p.assertion(`\`+string(c), at)
		return false
	case c >= '1' && c <= '9':
		digits := p.text[p.pos:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		p.pos += len(digits)
		number, err := strconv.Atoi(digits)
		if err != nil || number > p.groups {
			p.refuse(`it has \` + digits + `, but not so many groups`)
			return false
		}
		p.refer(number, `\`+digits)
	case c == 'k':
		name, _, ok := strings.Cut(strings.TrimPrefix(p.text[p.pos:], "k<"), ">")
		if !strings.HasPrefix(p.text[p.pos:], "k<") || !ok || p.names[name] == 0 {
			p.refuse(`it has a \k that names no group`)
			return false
		}
		p.pos += len("k<>") + len(name)
		p.refer(p.names[name], `\k<`+name+`>`)
	default:
		if set, one := p.classEscape(); set != nil {
			p.emit(set.text())
		} else if p.err == nil {
			p.emit(regexp.QuoteMeta(string(one)))
		}
	}
	return p.err == nil
}

// refer writes a backreference.
func (p *parser) refer(group int, text string) {
	p.look = true
	p.refs = append(p.refs, reference{group: group, in: p.in, text: text, early: p.closed[group] == nil})
	p.emit(`(?:\` + strconv.Itoa(group) + `)`)
}

// checkReference refuses a reference that may find the capture of an earlier repetition: ECMA-262 forgets it, the engine does not.
func (p *parser) checkReference(r reference) {
	above := map[*scope]bool{}
	for s := r.in; s != nil; s = s.parent {
		above[s] = true
	}
	refused, optional := false, r.early
	s := p.closed[r.group]
	for ; s != nil && !above[s]; s = s.parent {
		refused = refused || s.repeated
		optional = optional || s.optional
	}
	for ; s != nil; s = s.parent {
		refused = refused || optional && s.repeated
	}
	if refused {
		p.refuse("it has " + r.text + ", which refers to a group within a repetition in a way that is not supported")
	}
}
