package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"tutti/internal/core"
)

// object is a JSON object of a body by its members, whose names are taken as they are: encoding/json alone would take
// EXPIRESAT for expiresAt.
type object map[string]json.RawMessage

// decodeObject reads a body; one that is no JSON object, or has two members of one name, of which readers would take
// different ones, is CodeInvalid.
func decodeObject(body []byte) (object, error) { return decodeObjectOf("the body", body) }

// decodeObjectOf reads an object as decodeObject does; what names it in messages.
func decodeObjectOf(what string, text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, core.NewError(core.CodeInvalid, what+" is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, core.WrapError(core.CodeInvalid, what+" is not valid JSON", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(whole))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, core.NewError(core.CodeInvalid, what+" is not a JSON object")
	}
	members := object{}
	for decoder.More() {
		// What is valid as a whole cannot fail in a part.
		token, _ := decoder.Token()
		name, _ := token.(string)
		if _, twice := members[name]; twice {
			return nil, core.NewError(core.CodeInvalid, "member "+shown(name)+" of "+what+" stands twice")
		}
		var value json.RawMessage
		_ = decoder.Decode(&value)
		members[name] = value
	}
	return members, nil
}

// only refuses a member that is not one of the names.
func (o object) only(names ...string) error {
	for _, given := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(names, given) {
			continue
		}
		name := strings.ToValidUTF8(given[:min(len(given), maxNameBytes)], "")
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("unknown member %q", name),
			Hint: "the nearest member is " + core.Nearest(name, slices.Values(names)),
		}
	}
	return nil
}

// has tells whether a member is there and not null.
func (o object) has(name string) bool { return len(o[name]) > 0 && string(o[name]) != "null" }

// text gives a member that is a string, "" when it is absent or null.
func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	var v string
	if err := json.Unmarshal(o[name], &v); err != nil {
		return "", memberFault(name, "must be a string")
	}
	if strings.ContainsRune(v, 0) {
		return "", memberFault(name, "holds a NUL character")
	}
	return v, nil
}

// texts gives a member that is an array of strings, none when it is absent or null.
func (o object) texts(name string) ([]string, error) {
	if !o.has(name) {
		return nil, nil
	}
	var given []*string
	if err := json.Unmarshal(o[name], &given); err != nil {
		return nil, memberFault(name, "must be an array of strings")
	}
	values := make([]string, len(given))
	for i, v := range given {
		if v == nil {
			return nil, memberFault(name, "must be an array of strings")
		}
		values[i] = *v
	}
	return values, nil
}

func memberFault(name, fault string) error {
	return core.NewError(core.CodeInvalid, "member "+name+" of the body "+fault)
}
