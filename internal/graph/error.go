package graph

import (
	"context"
	"errors"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tutti/internal/core"
)

// Codes of errors in extensions.code, which clients know from Apollo's server.
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

// introspectionDisabled is in extensions.validationErrorCode where introspection is off: federating servers look for it.
const introspectionDisabled = "INTROSPECTION_DISABLED"

// maxErrors is how many errors an answer tells; what is wrong with one field is often wrong in every document.
const maxErrors = 100

// gqlError is an error of GraphQL. All of it is safe to show.
type gqlError struct {
	message, code, hint string
	// detail is extensions.validationErrorCode, "" for none.
	detail     string
	violations []core.Violation
	// line and column are where in the query, from 1 on; line is 0 when that is not known.
	line, column int
	path         []step
}

// step is one part of the path of a field in the answer: a name, or an index where the name is "".
type step struct {
	name  string
	index int
}

// at says where in the query a fault is.
func (f *gqlError) at(pos *ast.Position) *gqlError {
	if pos != nil && pos.Line > 0 {
		f.line, f.column = pos.Line, pos.Column
	}
	return f
}

// inputError is what is wrong with an argument or a variable.
func inputError(message string) *gqlError { return &gqlError{message: message, code: codeInput} }

// errorOf tells an error to a client, without the text of its cause.
func errorOf(err error) *gqlError {
	f := &gqlError{message: core.MessageOf(err), hint: core.HintOf(err), code: codeInternal}
	e, known := errors.AsType[*core.Error](err)
	if !known {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			f.message, f.code = "the time for this request was over before it was answered", codeUnavailable
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

// errorsOf tells what the parser or a rule of validation says.
func errorsOf(err error, code string) []*gqlError {
	var list gqlerror.List
	if one, ok := errors.AsType[*gqlerror.Error](err); ok {
		list = gqlerror.List{one}
	} else if !errors.As(err, &list) {
		return []*gqlError{{message: "the query cannot be read", code: code}}
	}
	var faults []*gqlError
	for _, e := range list {
		if len(faults) == maxErrors {
			break
		}
		f := &gqlError{message: e.Message, code: code}
		if e.Rule == ruleNoIntrospection {
			f.detail = introspectionDisabled
		}
		if len(e.Locations) > 0 && e.Locations[0].Line > 0 {
			f.line, f.column = e.Locations[0].Line, e.Locations[0].Column
		}
		faults = append(faults, f)
	}
	return faults
}

// append writes the fault as JSON.
func (f *gqlError) append(dst []byte) []byte {
	dst = appendText(append(dst, `{"message":`...), f.message)
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
				dst = appendText(dst, s.name)
			} else {
				dst = strconv.AppendInt(dst, int64(s.index), 10)
			}
		}
		dst = append(dst, ']')
	}
	dst = appendText(append(dst, `,"extensions":{"code":`...), f.code)
	if f.detail != "" {
		dst = appendText(append(dst, `,"validationErrorCode":`...), f.detail)
	}
	if f.hint != "" {
		dst = appendText(append(dst, `,"hint":`...), f.hint)
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
		dst = appendText(append(dst, `{"pointer":`...), v.Pointer)
		dst = appendText(append(dst, `,"message":`...), v.Message)
		dst = appendText(append(dst, `,"keyword":`...), v.Keyword)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendErrors writes the member errors of a response, with a comma behind it when something follows.
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

// errorResponse answers a request of which nothing was executed.
func errorResponse(faults ...*gqlError) core.GraphQLResponse {
	return core.GraphQLResponse{Body: append(appendErrors([]byte{'{'}, faults), '}'), Refused: true}
}
