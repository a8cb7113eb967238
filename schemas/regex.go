package schemas

import (
	"errors"
	"regexp"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// matchTimeout ends a match of a backtracking expression; the text then counts as not matching.
const matchTimeout = 100 * time.Millisecond

// maxExpression bounds the length of an expression, and so the memory that it takes compiled.
const maxExpression = 16 << 10

// backtracking is an expression that Go's regexp does not know, such as one with a look-ahead. JSON Schema names
// ECMA-262 as its dialect.
type backtracking struct{ *regexp2.Regexp }

// MatchString tells whether s has a match; none when the time is over.
func (b backtracking) MatchString(s string) bool {
	ok, err := b.Regexp.MatchString(s)
	return ok && err == nil
}

// compileRegex prefers Go's engine, whose time is linear in the text.
func compileRegex(expression string) (jsonschema.Regexp, error) {
	if len(expression) > maxExpression {
		return nil, errors.New("the expression is too long")
	}
	linear, err := regexp.Compile(expression)
	if err == nil {
		return linear, nil
	}
	other, otherErr := regexp2.Compile(expression, regexp2.ECMAScript)
	if otherErr != nil {
		return nil, err
	}
	other.MatchTimeout = matchTimeout
	return backtracking{other}, nil
}
