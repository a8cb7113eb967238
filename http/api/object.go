package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
)

// Object holds the members of a JSON object by their exact names; encoding/json would accept EXPIRESAT for expiresAt.
type Object map[string]json.RawMessage

// DecodeObject reads a body. A body that is not a JSON object, or has two members with the same name, which parsers treat
// differently, is CodeInvalid.
func DecodeObject(body []byte) (Object, error) { return DecodeObjectOf("the body", body) }

// DecodeObjectOf reads an object as DecodeObject does; what names it in messages.
func DecodeObjectOf(what string, text []byte) (Object, error) {
	if !utf8.Valid(text) {
		return nil, core.NewError(core.CodeInvalid, what+" is not UTF-8")
	}
	if !json.Valid(text) {
		var whole json.RawMessage
		return nil, core.WrapError(core.CodeInvalid, what+" is not valid JSON", json.Unmarshal(text, &whole))
	}
	if text[jsontext.Space(text, 0)] != '{' {
		return nil, core.NewError(core.CodeInvalid, what+" is not a JSON object")
	}
	members := Object{}
	var err error
	jsontext.Members(text, 0, func(written []byte, _ bool, value jsontext.Span) bool {
		name := jsontext.Unescape(written)
		if _, twice := members[name]; twice {
			err = core.NewError(core.CodeInvalid, "member "+QuoteValue(name)+" of "+what+" appears twice")
		}
		members[name] = value.Of(text)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return members, nil
}

// Only returns an error for a member that is not one of the names.
func (o Object) Only(names ...string) error {
	for _, given := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(names, given) {
			continue
		}
		name := strings.ToValidUTF8(given[:min(len(given), maxNameBytes)], "")
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("unknown member %q", name),
			Hint: "the nearest member is " + spelling.Nearest(name, slices.Values(names)),
		}
	}
	return nil
}

// Has reports whether a member exists and is not null.
func (o Object) Has(name string) bool { return len(o[name]) > 0 && string(o[name]) != "null" }

// Text returns a member that is a string, "" when it is absent or null.
func (o Object) Text(name string) (string, error) {
	if !o.Has(name) {
		return "", nil
	}
	var v string
	if err := json.Unmarshal(o[name], &v); err != nil {
		return "", MemberError(name, "must be a string")
	}
	if strings.ContainsRune(v, 0) {
		return "", MemberError(name, "contains a NUL character")
	}
	return v, nil
}

// Texts returns a member that is an array of strings, none when it is absent or null.
func (o Object) Texts(name string) ([]string, error) {
	if !o.Has(name) {
		return nil, nil
	}
	var given []*string
	if err := json.Unmarshal(o[name], &given); err != nil {
		return nil, MemberError(name, "must be an array of strings")
	}
	values := make([]string, len(given))
	for i, v := range given {
		if v == nil {
			return nil, MemberError(name, "must be an array of strings")
		}
		values[i] = *v
	}
	return values, nil
}

// MemberError returns a CodeInvalid error for a member of the body.
func MemberError(name, problem string) error {
	return core.NewError(core.CodeInvalid, "member "+name+" of the body "+problem)
}
