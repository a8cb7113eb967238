package pattern

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

// Bounds of the regular expressions of a schema. The length of the text says little: six characters can be a repetition with a thousand
// instructions.
const (
	maxExpression = 16 << 10
	// maxTranslated bounds the length of both translations of an expression, in bytes.
	maxTranslated       = 1 << 20
	maxInstructions     = 20_000
	maxAllInstructions  = 500_000
	runesPerInstruction = 10
	// InstructionBytes is the memory of a compiled instruction.
	InstructionBytes = 64
)

// ErrTooLarge is returned for an expression that would take too much memory. Its text is safe to show.
var ErrTooLarge = errors.New("is a regular expression that is too large")

// Expression is a compiled regular expression. It is safe for concurrent use.
type Expression struct {
	text string
	// linear is set for Go's engine, backtracking for the other one.
	linear       *regexp.Regexp
	backtracking *regexp2.Regexp
	// instructions is the approximate number of instructions, runes that of the characters in classes.
	instructions, runes int
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// Weight returns the memory of the expression, in instructions.
func (e *Expression) Weight() int { return e.instructions + e.runes/runesPerInstruction }

// Match reports whether text contains a match. It soon returns false once stop is set.
func (e *Expression) Match(text string, stop *atomic.Bool) bool {
	switch {
	case e.backtracking != nil:
		if len(text) > maxBacktracked || stop.Load() {
			return false
		}
		ok, err := e.backtracking.MatchString(text)
		return ok && err == nil
	case e.instructions*len(text) <= maxWork:
		return e.linear.MatchString(text)
	default:
		return e.linear.MatchReader(&stoppable{strings.NewReader(text), stop}) && !stop.Load()
	}
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

// Set has the regular expressions of a schema, each compiled once.
type Set struct {
	// Stored is set for a schema that was registered before expressions were refused: one that is refused means what Go says.
	Stored bool
	known  map[string]*Expression
	weight int
}

// Compile compiles an expression. The error is ErrTooLarge, also if all expressions together take too much memory, or a *SyntaxError.
func (s *Set) Compile(text string) (*Expression, error) {
	compiled := s.known[text]
	if compiled == nil {
		var err error
		if compiled, err = Compile(text); err != nil && s.Stored {
			compiled, err = compileBoth(text, text, text)
		}
		if err != nil {
			return nil, err
		}
		if s.known == nil {
			s.known = map[string]*Expression{}
		}
		s.known[text] = compiled
		s.weight += compiled.Weight()
	}
	if s.TooHeavy() {
		return nil, ErrTooLarge
	}
	return compiled, nil
}

// Known returns the compiled form of an expression that Compile accepted, nil for another.
func (s *Set) Known(text string) *Expression { return s.known[text] }

// Weight returns the memory of all expressions, in instructions.
func (s *Set) Weight() int { return s.weight }

// TooHeavy reports whether all expressions take too much memory together.
func (s *Set) TooHeavy() bool { return s.weight > maxAllInstructions }

// Compile compiles an expression of ECMA-262. The error is ErrTooLarge or a *SyntaxError.
func Compile(text string) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, ErrTooLarge
	}
	t, err := translate(text)
	if err != nil {
		return nil, err
	}
	if t.look {
		return compileBacktracking(text, t.backtracking)
	}
	return compileBoth(text, t.linear, t.backtracking)
}

// compileBoth prefers Go's engine, which does not support every repetition.
func compileBoth(text, linear, backtracking string) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, ErrTooLarge
	}
	tree, err := syntax.Parse(linear, syntax.Perl)
	if err != nil {
		return compileBacktracking(text, backtracking)
	}
	// Counted before it is compiled: compiling could take hundreds of megabytes.
	size, runes := instructionsOf(tree)
	if size+runes/runesPerInstruction > maxInstructions {
		return nil, ErrTooLarge
	}
	compiled, err := regexp.Compile(linear)
	if err != nil {
		return nil, &SyntaxError{"it is not supported"}
	}
	return &Expression{text: text, linear: compiled, instructions: size, runes: runes}, nil
}

// compileBacktracking compiles an expression that Go's engine does not support. Its weight is bounded by the length: a repetition is one
// instruction here.
func compileBacktracking(text, translated string) (*Expression, error) {
	compiled, err := regexp2.Compile(translated, regexp2.ECMAScript)
	if err != nil {
		return nil, &SyntaxError{"it is not supported"}
	}
	compiled.MatchTimeout = matchTimeout
	return &Expression{text: text, backtracking: compiled, instructions: len(translated)}, nil
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
