package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/core"
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

// errorJSON is the form of an error in responses.
type errorJSON struct {
	Message   string     `json:"message"`
	Locations []location `json:"locations,omitempty"`
	Path      []any      `json:"path,omitempty"`

	Extensions struct {
		Code       string           `json:"code"`
		Detail     string           `json:"validationErrorCode,omitempty"`
		Hint       string           `json:"hint,omitempty"`
		Violations []core.Violation `json:"violations,omitempty"`
	} `json:"extensions"`
}

type location struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (f *Error) json() errorJSON {
	e := errorJSON{Message: f.Message}
	if f.Line > 0 {
		e.Locations = []location{{f.Line, f.Column}}
	}
	for _, s := range f.path {
		if s.name != "" {
			e.Path = append(e.Path, s.name)
		} else {
			e.Path = append(e.Path, s.index)
		}
	}
	e.Extensions.Code, e.Extensions.Detail, e.Extensions.Hint, e.Extensions.Violations = f.Code, f.Detail, f.Hint, f.violations
	return e
}

// AppendErrors writes the response member errors.
func AppendErrors(dst []byte, faults []*Error) []byte {
	all := make([]errorJSON, len(faults))
	for i, f := range faults {
		all[i] = f.json()
	}
	return appendJSON(append(dst, `"errors":`...), all)
}

// appendJSON writes a value of known types, which can always be encoded.
func appendJSON(dst []byte, value any) []byte {
	b := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
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
	warnBuckets       = "BUCKETS_CLAMPED"
)

// Warning reports a problem of a complete response. All its fields are safe to show to clients.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Field is the field name in the catalogue, "" for none.
	Field string `json:"field,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// SeveralValues returns the warning for a field that has several values in a document, but is not declared as a list.
func SeveralValues(field string) Warning {
	return Warning{
		Code: warnSeveralValues, Field: field, Hint: "set isArray for the field in extended.json",
		Message: "documents have several values in the field " + field + ", which is not declared as a list: only the first is returned",
	}
}

// PageClamped returns the warning for a page that is larger than the window.
func PageClamped(first, window int) Warning {
	return Warning{
		Code: warnClamped, Hint: "read the rest page by page: pass the searchAfter of the last edge to the next page",
		Message: fmt.Sprintf("first is %d, and a page has %d documents at most: only those are returned", first, window),
	}
}

// BucketsClamped returns the warning for a facet of a field with more values than a response has.
func BucketsClamped(field string, returned int, values int64) Warning {
	return Warning{
		Code: warnBuckets, Field: field, Hint: "select fewer documents by a filter",
		Message: fmt.Sprintf("the field %s has %d values in the documents: only the %d in most documents are returned", field, values, returned),
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
	return append(appendJSON(append(dst, `"extensions":{"warnings":`...), warnings), '}')
}
