package federation

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"tutti/internal/core"
)

// reply is an answer of GraphQL.
type reply struct {
	Data   map[string]json.RawMessage `json:"data"`
	Errors []replyError               `json:"errors"`
}

// replyError is an error of GraphQL.
type replyError struct {
	Message    string      `json:"message"`
	Extensions errorDetail `json:"extensions"`
}

// errorDetail are the codes of an error, each "" where it is not given as a text.
type errorDetail struct {
	Code, Validation string
}

// UnmarshalJSON reads what is there of it: servers put what they like into extensions.
func (d *errorDetail) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	_ = json.Unmarshal(members["code"], &d.Code) // what is no text is no code
	_ = json.Unmarshal(members["validationErrorCode"], &d.Validation)
	return nil
}

// replyOf reads an answer; false for what is none of GraphQL.
func replyOf(raw []byte) (reply, bool) {
	var r reply
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &r) != nil {
		return reply{}, false
	}
	return r, r.Data != nil || len(r.Errors) > 0
}

// Limits of what is shown of errors.
const (
	maxShownErrors = 3
	maxShownRunes  = 300
)

// aboutQuery reports whether an error of a code is about what was asked, which is the client's own, and not about the server.
func aboutQuery(code string) bool {
	switch code {
	case "BAD_USER_INPUT", "BAD_REQUEST", "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED", "OPERATION_RESOLUTION_FAILURE", "UNAUTHENTICATED", "FORBIDDEN":
		return true
	default:
		return false
	}
}

// isCode reports whether a text is written as codes of errors are.
func isCode(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// publicErrors puts the errors of a remote in words, "" without any. Nothing is shown that has one of the secrets in it.
func (r *reply) publicErrors(secrets []string) string {
	var texts []string
	for _, e := range r.Errors {
		if len(texts) == maxShownErrors {
			texts = append(texts, "and more")
			break
		}
		text := "the node has an error of its own"
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

// errorTexts are the errors as they are, for a server that is this one.
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

// isSafe reports whether a message can be shown: addresses and what clients sent in their headers cannot.
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

// shortened returns the beginning of a text, on one line.
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

// introspectionOff reports whether an answer says that introspection is not allowed. Apollo and tutti have a code for it, others
// say it in words, or do not know the field.
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

// errorOf is the error of an answer without what was asked for.
func (r *reply) errorOf(secrets []string) error {
	text := r.publicErrors(secrets)
	if text == "" {
		text = "answered without what it was asked for"
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
