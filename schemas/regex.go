package schemas

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// matchTimeout ends a match of a backtracking expression; the text then counts as not matching.
	matchTimeout = 100 * time.Millisecond
	// maxBacktracked is the longest text that a backtracking expression is asked about, in bytes: what it remembers of its
	// way takes about two hundred times as much.
	maxBacktracked = 256 << 10
)

// Bounds of the regular expressions of a schema. An instruction takes instructionBytes compiled; its text says little: a
// repetition of six characters can be a thousand instructions.
const (
	maxExpression       = 16 << 10
	maxInstructions     = 20_000
	maxAllInstructions  = 500_000
	instructionBytes    = 64
	runesPerInstruction = 10
)

// errTooLarge refuses an expression that would take too much memory compiled. Its text is safe to show.
var errTooLarge = errors.New("is too large a regular expression")

// sizedRegexp knows what it takes in memory, in instructions.
type sizedRegexp interface {
	jsonschema.Regexp
	weight() int
}

// linear is an expression of Go's engine, of about so many instructions and of classes that name so many characters.
type linear struct {
	*regexp.Regexp
	instructions, runes int
}

func (l linear) weight() int { return l.instructions + l.runes/runesPerInstruction }

// backtracking is an expression that Go's regexp does not know, such as one with a look-ahead. JSON Schema names
// ECMA-262 as its dialect.
type backtracking struct {
	*regexp2.Regexp
}

// weight is bounded by the length: a repetition is one instruction here.
func (b backtracking) weight() int { return len(b.String()) }

// MatchString tells whether s has a match; none when the time is over.
func (b backtracking) MatchString(s string) bool {
	ok, err := b.Regexp.MatchString(s)
	return ok && err == nil
}

// expressions compiles those of a schema, each once.
type expressions struct {
	known map[string]sizedRegexp
	// weight is that of all.
	weight int
}

func newExpressions() *expressions { return &expressions{known: map[string]sizedRegexp{}} }

// compile is a jsonschema.RegexpEngine.
func (e *expressions) compile(expression string) (jsonschema.Regexp, error) {
	if known, ok := e.known[expression]; ok {
		return known, nil
	}
	compiled, err := compileRegex(expression)
	if err != nil {
		return nil, err
	}
	if e.tooHeavy() {
		return nil, errTooLarge
	}
	e.weight += compiled.weight()
	e.known[expression] = compiled
	return compiled, nil
}

// tooHeavy tells whether they take too much memory together. The last one is within it, so that there is less than one too
// much.
func (e *expressions) tooHeavy() bool { return e.weight > maxAllInstructions }

// compileRegex prefers Go's engine, whose time is linear in the text.
func compileRegex(expression string) (sizedRegexp, error) {
	if len(expression) > maxExpression {
		return nil, errTooLarge
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return compileOther(expression, err)
	}
	// Counted before it is compiled: that alone could take hundreds of megabytes.
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
func compileOther(expression string, err error) (sizedRegexp, error) {
	other, otherErr := regexp2.Compile(expression, regexp2.ECMAScript)
	if otherErr != nil {
		return nil, err
	}
	other.MatchTimeout = matchTimeout
	return backtracking{other}, nil
}

// instructionsOf gives about how many instructions a tree compiles to, at most one more than maxInstructions, and how many
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
