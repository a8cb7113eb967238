package graphql

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
	codeParse        = "GRAPHQL_PARSE_FAILED"
	codeValidation   = "GRAPHQL_VALIDATION_FAILED"
	codeOperation    = "OPERATION_RESOLUTION_FAILURE"
	codeRequest      = "BAD_REQUEST"
	codeInput        = "BAD_USER_INPUT"
	codeUnauthorized = "UNAUTHENTICATED"
	codeForbidden    = "FORBIDDEN"
	codeUnavailable  = "SERVICE_UNAVAILABLE"
	codeInternal     = "INTERNAL_SERVER_ERROR"
)

// maxErrors is the maximum number of errors in a response; one error often repeats in every document.
const maxErrors = 100

// gqlError is a GraphQL error. All its fields are safe to show to clients.
type gqlError struct {
	message, code, hint string
	// detail is extensions.validationErrorCode, "" for none.
	detail     string
	violations []core.Violation
	// line and column are the location in the query, from 1; line is 0 if unknown.
	line, column int
	path         []step
}

// step is one element of a response path: a name, or an index if name is "".
type step struct {
	name  string
	index int
}

// at sets the location in the query.
func (f *gqlError) at(pos *ast.Position) *gqlError {
	if pos != nil && pos.Line > 0 {
		f.line, f.column = pos.Line, pos.Column
	}
	return f
}

// inputError returns the error of an invalid argument or variable.
func inputError(message string) *gqlError { return &gqlError{message: message, code: codeInput} }

// errorOf converts an error for the client, without the text of its cause.
func errorOf(err error) *gqlError {
	f := &gqlError{message: core.MessageOf(err), hint: core.HintOf(err), code: codeInternal}
	e, known := errors.AsType[*core.Error](err)
	if !known {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			f.message, f.code = "request timed out", codeUnavailable
		}
		return f
	}
	f.violations = e.Violations
	switch e.Code {
	case core.CodeInvalid, core.CodeNotFound, core.CodeTooLarge, core.CodeConflict, core.CodeUnsupported, core.CodeAbsent:
		f.code = codeInput
	case core.CodeUnauthenticated:
		f.code = codeUnauthorized
	case core.CodeForbidden:
		f.code = codeForbidden
	case core.CodeUnavailable, core.CodeOverloaded, core.CodeIndexBlocked:
		f.code = codeUnavailable
	default:
	}
	return f
}

// append writes the error as JSON.
func (f *gqlError) append(dst []byte) []byte {
	dst = jsontext.AppendString(append(dst, `{"message":`...), f.message)
	if f.line > 0 {
		dst = strconv.AppendInt(append(dst, `,"locations":[{"line":`...), int64(f.line), 10)
		dst = strconv.AppendInt(append(dst, `,"column":`...), int64(f.column), 10)
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
	dst = jsontext.AppendString(append(dst, `,"extensions":{"code":`...), f.code)
	if f.detail != "" {
		dst = jsontext.AppendString(append(dst, `,"validationErrorCode":`...), f.detail)
	}
	if f.hint != "" {
		dst = jsontext.AppendString(append(dst, `,"hint":`...), f.hint)
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

// appendErrors writes the response member errors, with a trailing comma.
func appendErrors(dst []byte, faults []*gqlError) []byte {
	dst = append(dst, `"errors":[`...)
	for i, f := range faults {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.append(dst)
	}
	return append(dst, ']')
}

// errorResponse returns the response of a request that was rejected before execution.
func errorResponse(faults ...*gqlError) core.GraphQLResponse {
	return core.GraphQLResponse{Body: append(appendErrors([]byte{'{'}, faults), '}'), Rejected: true}
}
