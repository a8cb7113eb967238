package output

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// mutation is set for a mutation in a read-only request.
	mutation bool
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

// MutationError returns the error of a mutation in a read-only request.
func MutationError() *Error {
	return &Error{Message: "a mutation must be sent by POST", Code: CodeRequest, mutation: true}
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
	return core.GraphQLResponse{
		Body: append(AppendErrors([]byte{'{'}, faults), '}'), Rejected: true,
		RejectedMutation: slices.ContainsFunc(faults, func(f *Error) bool { return f.mutation }),
	}
}

// Warning codes in extensions.warnings.
const (
	warnSeveralValues = "MULTIPLE_VALUES"
	warnClamped       = "PAGE_CLAMPED"
)

// Warning reports a problem of a complete response. All its fields are safe to show to clients.
type Warning struct {
	code, message string
	// field is the field name in the catalogue, "" for none.
	field, hint string
}

// SeveralValues returns the warning for a field that has several values in a document, but is not declared as a list.
func SeveralValues(field string) Warning {
	return Warning{
		code: warnSeveralValues, field: field, hint: "set isArray for the field in extended.json",
		message: "documents have several values in the field " + field + ", which is not declared as a list: only the first is returned",
	}
}

// PageClamped returns the warning for a page that is larger than the window.
func PageClamped(first, window int) Warning {
	return Warning{
		code: warnClamped, hint: "read the rest page by page: pass the searchAfter of the last edge to the next page",
		message: fmt.Sprintf("first is %d, and a page has %d documents at most: only those are returned", first, window),
	}
}

// Warn adds warnings that are not there yet.
func (w *Writer) Warn(all ...Warning) {
	for _, one := range all {
		if len(w.Warnings) < MaxErrors && !slices.Contains(w.Warnings, one) {
			w.Warnings = append(w.Warnings, one)
		}
	}
}

// AppendWarnings writes the response member extensions.
func AppendWarnings(dst []byte, warnings []Warning) []byte {
	dst = append(dst, `"extensions":{"warnings":[`...)
	for i, one := range warnings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(append(dst, `{"code":`...), one.code)
		dst = jsontext.AppendString(append(dst, `,"message":`...), one.message)
		if one.field != "" {
			dst = jsontext.AppendString(append(dst, `,"field":`...), one.field)
		}
		if one.hint != "" {
			dst = jsontext.AppendString(append(dst, `,"hint":`...), one.hint)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}
