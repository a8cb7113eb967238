package output

import (
	"context"
	"errors"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
	"tutti/internal/jsontext"
)

// Error codes in extensions.code, as defined by Apollo Server.
const (
	CodeParse           = "GRAPHQL_PARSE_FAILED"
	CodeValidation      = "GRAPHQL_VALIDATION_FAILED"
	CodeOperation       = "OPERATION_RESOLUTION_FAILURE"
	CodeRequest         = "BAD_REQUEST"
	CodeInput           = "BAD_USER_INPUT"
	CodeUnauthenticated = "UNAUTHENTICATED"
	CodeForbidden       = "FORBIDDEN"
	CodeUnavailable     = "SERVICE_UNAVAILABLE"
	CodeInternal        = "INTERNAL_SERVER_ERROR"
)

// MaxErrors is the maximum number of errors in a response; one error often repeats in every document.
const MaxErrors = 100

// Error is a GraphQL error. All its fields are safe to show to clients.
type Error struct {
	Message, Code, Hint string
	// Detail is extensions.validationErrorCode, "" for none.
	Detail     string
	violations []core.Violation
	// Line and column are the location in the query, from 1; line is 0 if unknown.
	Line, Column int
	path         []step
}

// step is one element of a response path: a name, or an index if name is "".
type step struct {
	name  string
	index int
}

// At sets the location in the query.
func (f *Error) At(pos *ast.Position) *Error {
	if pos != nil && pos.Line > 0 {
		f.Line, f.Column = pos.Line, pos.Column
	}
	return f
}

// InputError returns the error of an invalid argument or variable.
func InputError(message string) *Error { return &Error{Message: message, Code: CodeInput} }

// ErrorOf converts an error for the client, without the text of its cause.
func ErrorOf(err error) *Error {
	f := &Error{Message: core.MessageOf(err), Hint: core.HintOf(err), Code: CodeInternal}
	e, known := errors.AsType[*core.Error](err)
	if !known {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			f.Message, f.Code = "request timed out", CodeUnavailable
		}
		return f
	}
	f.violations = e.Violations
	switch e.Code {
	case core.CodeInvalid, core.CodeNotFound, core.CodeTooLarge, core.CodeConflict, core.CodeUnsupported, core.CodeAbsent:
		f.Code = CodeInput
	case core.CodeUnauthenticated:
		f.Code = CodeUnauthenticated
	case core.CodeForbidden:
		f.Code = CodeForbidden
	case core.CodeUnavailable, core.CodeOverloaded, core.CodeIndexBlocked:
		f.Code = CodeUnavailable
	default:
	}
	return f
}

// append writes the error as JSON.
func (f *Error) append(dst []byte) []byte {
	dst = jsontext.AppendString(append(dst, `{"message":`...), f.Message)
	if f.Line > 0 {
		dst = strconv.AppendInt(append(dst, `,"locations":[{"line":`...), int64(f.Line), 10)
		dst = strconv.AppendInt(append(dst, `,"column":`...), int64(f.Column), 10)
		dst = append(dst, "}]"...)
	}
	if len(f.path) > 0 {
		dst = append(dst, `,"path":[`...)
		for i, s := range f.path {
			if i > 0 {
				dst = append(dst, ',')
			}
			if s.name != "" {
				dst = jsontext.AppendString(dst, s.name)
			} else {
				dst = strconv.AppendInt(dst, int64(s.index), 10)
			}
		}
		dst = append(dst, ']')
	}
	dst = jsontext.AppendString(append(dst, `,"extensions":{"code":`...), f.Code)
	if f.Detail != "" {
		dst = jsontext.AppendString(append(dst, `,"validationErrorCode":`...), f.Detail)
	}
	if f.Hint != "" {
		dst = jsontext.AppendString(append(dst, `,"hint":`...), f.Hint)
	}
	if len(f.violations) > 0 {
		dst = appendViolations(append(dst, `,"violations":`...), f.violations)
	}
	return append(dst, "}}"...)
}

func appendViolations(dst []byte, violations []core.Violation) []byte {
	dst = append(dst, '[')
	for i, v := range violations {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(append(dst, `{"pointer":`...), v.Pointer)
		dst = jsontext.AppendString(append(dst, `,"message":`...), v.Message)
		dst = jsontext.AppendString(append(dst, `,"keyword":`...), v.Keyword)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// AppendErrors writes the response member errors, with a trailing comma.
func AppendErrors(dst []byte, faults []*Error) []byte {
	dst = append(dst, `"errors":[`...)
	for i, f := range faults {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.append(dst)
	}
	return append(dst, ']')
}

// Rejection returns the response of a request that was rejected before execution.
func Rejection(faults ...*Error) core.GraphQLResponse {
	return core.GraphQLResponse{Body: append(AppendErrors([]byte{'{'}, faults), '}'), Rejected: true}
}
