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
	// maxWork limits a match that cannot be stopped: the number of instructions times that of bytes.
	maxWork = 50_000_000
)

// Bounds of the regular expressions of a schema. A compiled instruction takes instructionBytes. The length of the text says
// little: six characters can be a repetition with a thousand instructions.
const (
	maxExpression       = 16 << 10
	maxInstructions     = 20_000
	maxAllInstructions  = 500_000
	instructionBytes    = 64
	runesPerInstruction = 10
	// maxNative is the weight up to which the library matches an expression itself.
	maxNative = 64
)

// errTooLarge is returned for an expression that would take too much memory. Its text is safe to show.
var errTooLarge = errors.New("is a regular expression that is too large")

// expression is a compiled regular expression that knows its memory, in instructions.
type expression interface {
	// match reports whether text matches. It soon returns false once stop is set.
	match(text string, stop *atomic.Bool) bool
	String() string
	weight() int
	// native reports whether the library may compile and match it.
	native() bool
}

// linear is an expression for Go's engine, with the approximate number of its instructions and of the characters in its
// classes.
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

// backtracking is an expression that Go's regexp does not support, such as one with a look-ahead. JSON Schema uses the dialect
// of ECMA-262.
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
	// weight is the total weight; a native expression counts each time it occurs.
	weight int
}

// compile compiles an expression. The error is errTooLarge, also if all expressions together take too much memory, or that of
// an invalid expression.
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

// compileOther compiles an expression that Go's engine rejected with err.
func compileOther(text string, err error) (expression, error) {
	other, otherErr := regexp2.Compile(text, regexp2.ECMAScript)
	if otherErr != nil {
		return nil, err
	}
	other.MatchTimeout = matchTimeout
	return backtracking{other}, nil
}

// instructionsOf estimates the number of instructions of a compiled tree, up to maxInstructions+1, and of the characters in
// its classes, which repetitions share.
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
		// x{2,5} is xx(x(x(x)?)?)? and x{2,} is xx+: each optional part has one more instruction.
		size = parts*max(tree.Min, tree.Max, 1) + max(tree.Max-tree.Min, 1)
	default:
	}
	return min(size, maxInstructions+1), runes
}
