package validation

import (
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2"
)

const (
	// matchTimeout ends a match of a backtracking expression; the text then counts as not matching.
	matchTimeout = 100 * time.Millisecond
	// maxBacktracked is the longest text that a backtracking expression is matched against, in bytes: its stack takes about
	// two hundred times as much. A longer text counts as not matching.
	maxBacktracked = 256 << 10
	// maxWork is how many instructions times bytes a match may take that cannot be stopped.
	maxWork = 50_000_000
)

// Bounds of the regular expressions of a schema. A compiled instruction takes instructionBytes; the length of the text is no
// measure: a repetition of six characters can be a thousand instructions.
const (
	maxExpression       = 16 << 10
	maxInstructions     = 20_000
	maxAllInstructions  = 500_000
	instructionBytes    = 64
	runesPerInstruction = 10
	// maxNative is the weight up to which the library matches an expression itself.
	maxNative = 64
)

// errTooLarge refuses an expression that would take too much memory compiled. Its text is safe to show.
var errTooLarge = errors.New("is too large a regular expression")

// expression is a compiled regular expression that knows its memory, in instructions.
type expression interface {
	// match reports whether text matches. It soon returns false once stop is set.
	match(text string, stop *atomic.Bool) bool
	String() string
	weight() int
	// native reports whether the library may compile and match it.
	native() bool
}

// linear is an expression of Go's engine, of about so many instructions and of classes that name so many characters.
type linear struct {
	*regexp.Regexp
	instructions, runes int
}

func (l linear) weight() int  { return l.instructions + l.runes/runesPerInstruction }
func (l linear) native() bool { return l.weight() <= maxNative }

func (l linear) match(text string, stop *atomic.Bool) bool {
	if l.instructions*len(text) <= maxWork {
		return l.MatchString(text)
	}
	return l.MatchReader(&stoppable{strings.NewReader(text), stop}) && !stop.Load()
}

// stoppable ends a text once stop is set.
type stoppable struct {
	*strings.Reader
	stop *atomic.Bool
}

// ReadRune returns io.EOF once stop is set.
func (s *stoppable) ReadRune() (rune, int, error) {
	if s.stop.Load() {
		return 0, 0, io.EOF
	}
	return s.Reader.ReadRune()
}

// backtracking is an expression that Go's regexp does not know, such as one with a look-ahead. JSON Schema names
// ECMA-262 as its dialect.
type backtracking struct {
	*regexp2.Regexp
}

// weight is bounded by the length: a repetition is one instruction here.
func (b backtracking) weight() int  { return len(b.String()) }
func (b backtracking) native() bool { return false }

func (b backtracking) match(text string, stop *atomic.Bool) bool {
	if len(text) > maxBacktracked || stop.Load() {
		return false
	}
	ok, err := b.MatchString(text)
	return ok && err == nil
}

// expressions are the regular expressions of a schema. Those that are not native are compiled once.
type expressions struct {
	known map[string]expression
	// weight is that of all, a native one counted wherever it occurs.
	weight int
}

// compile compiles an expression. The error is errTooLarge, also if all expressions take too much memory together, or says that
// the expression is not valid.
func (e *expressions) compile(text string) (expression, error) {
	compiled, known := e.known[text]
	if !known {
		var err error
		if compiled, err = compileRegex(text); err != nil {
			return nil, err
		}
		e.known[text] = compiled
	}
	if !known || compiled.native() {
		e.weight += compiled.weight()
	}
	if e.tooHeavy() {
		return nil, errTooLarge
	}
	return compiled, nil
}

// tooHeavy reports whether all expressions take too much memory together.
func (e *expressions) tooHeavy() bool { return e.weight > maxAllInstructions }

// compileRegex prefers Go's engine, whose time is linear in the text.
func compileRegex(expression string) (expression, error) {
	if len(expression) > maxExpression {
		return nil, errTooLarge
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return compileOther(expression, err)
	}
	// Counted before it is compiled: compiling could take hundreds of megabytes.
	size, runes := instructionsOf(tree)
	if size+runes/runesPerInstruction > maxInstructions {
		return nil, errTooLarge
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return linear{compiled, size, runes}, nil
}

// compileOther compiles what Go's engine refused with err.
func compileOther(text string, err error) (expression, error) {
	other, otherErr := regexp2.Compile(text, regexp2.ECMAScript)
	if otherErr != nil {
		return nil, err
	}
	other.MatchTimeout = matchTimeout
	return backtracking{other}, nil
}

// instructionsOf returns about how many instructions a tree compiles to, at most one more than maxInstructions, and how many
// characters its classes name, which repetitions share.
func instructionsOf(tree *syntax.Regexp) (size, runes int) {
	parts := 0
	for _, part := range tree.Sub {
		own, ownRunes := instructionsOf(part)
		parts += own
		runes += ownRunes
	}
	size = parts + 1
	switch tree.Op {
	case syntax.OpLiteral:
		size = len(tree.Rune)
	case syntax.OpCharClass:
		runes = len(tree.Rune)
	case syntax.OpConcat:
		size = parts
	case syntax.OpCapture, syntax.OpAlternate:
		size = parts + len(tree.Sub) + 1
	case syntax.OpRepeat:
		// x{2,5} is xx(x(x(x)?)?)?, x{2,} is xx+, so that what is optional has an instruction more.
		size = parts*max(tree.Min, tree.Max, 1) + max(tree.Max-tree.Min, 1)
	default:
	}
	return min(size, maxInstructions+1), runes
}
