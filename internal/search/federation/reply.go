package federation

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"tutti/internal/core"
)

// reply is a GraphQL response.
type reply struct {
	Data   map[string]json.RawMessage `json:"data"`
	Errors []replyError               `json:"errors"`
}

// replyError is a GraphQL error.
type replyError struct {
	Message    string      `json:"message"`
	Extensions errorDetail `json:"extensions"`
}

// errorDetail are the codes of an error, each "" if it is not a string.
type errorDetail struct {
	Code, Validation string
}

// UnmarshalJSON reads the known codes: servers put arbitrary values into extensions.
func (d *errorDetail) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	_ = json.Unmarshal(members["code"], &d.Code) // only strings are codes
	_ = json.Unmarshal(members["validationErrorCode"], &d.Validation)
	return nil
}

// replyOf parses a response; false if it is not GraphQL.
func replyOf(raw []byte) (reply, bool) {
	var r reply
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &r) != nil {
		return reply{}, false
	}
	return r, r.Data != nil || len(r.Errors) > 0
}

// Limits of displayed errors.
const (
	maxShownErrors = 3
	maxShownRunes  = 300
)

// aboutQuery reports whether an error code is about the client's query, not about the server.
func aboutQuery(code string) bool {
	switch code {
	case "BAD_USER_INPUT", "BAD_REQUEST", "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED", "OPERATION_RESOLUTION_FAILURE", "UNAUTHENTICATED", "FORBIDDEN":
		return true
	default:
		return false
	}
}

// isCode reports whether a string has the form of an error code.
func isCode(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// publicErrors returns the displayable text of the errors of a remote, "" for none. It omits messages that contain one of the
// secrets.
func (r *reply) publicErrors(secrets []string) string {
	var texts []string
	for _, e := range r.Errors {
		if len(texts) == maxShownErrors {
			texts = append(texts, "and more")
			break
		}
		text := "internal error of the node"
		switch {
		case aboutQuery(e.Extensions.Code) && isSafe(e.Message, secrets):
			text = shortened(e.Message)
		case isCode(e.Extensions.Code):
			text += ": " + e.Extensions.Code
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// errorTexts returns the errors unchanged, for the local server.
func (r *reply) errorTexts() string {
	var texts []string
	for _, e := range r.Errors {
		if len(texts) == maxShownErrors {
			break
		}
		texts = append(texts, shortened(e.Message))
	}
	return strings.Join(texts, "; ")
}

// isSafe reports whether a message can be shown: it must not contain addresses or values of the client's headers.
func isSafe(message string, secrets []string) bool {
	if message == "" || strings.Contains(message, "://") {
		return false
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(message, secret) {
			return false
		}
	}
	return true
}

// shortened returns the beginning of a string, on one line.
func shortened(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	if runes := []rune(text); len(runes) > maxShownRunes {
		return string(runes[:maxShownRunes]) + "…"
	}
	return text
}

// introspectionOff reports whether a response says that introspection is not allowed. Apollo and tutti have a code for it; others
// have only a message, or do not know the field.
func (r *reply) introspectionOff() bool {
	for _, e := range r.Errors {
		message := strings.ToLower(e.Message)
		if e.Extensions.Validation == "INTROSPECTION_DISABLED" || strings.Contains(message, "introspection") ||
			e.Extensions.Code == "GRAPHQL_VALIDATION_FAILED" && strings.Contains(message, "__type") {
			return true
		}
	}
	return false
}

// errorOf returns the error of a response without the requested data.
func (r *reply) errorOf(secrets []string) error {
	text := r.publicErrors(secrets)
	if text == "" {
		text = "responded without the requested data"
	}
	code := core.CodeUpstream
	for _, e := range r.Errors {
		switch e.Extensions.Code {
		case "UNAUTHENTICATED":
			code = core.CodeUnauthenticated
		case "FORBIDDEN":
			code = core.CodeForbidden
		}
	}
	return core.NewError(code, text)
}
