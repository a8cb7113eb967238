package download

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"tutti/internal/core"
)

// object is an object of params.
type object struct {
	// pointer is its JSON pointer.
	pointer string
	members map[string]json.RawMessage
}

// objectOf reads an object at a pointer.
func objectOf(raw json.RawMessage, pointer string) (object, error) {
	o := object{pointer: pointer}
	if err := json.Unmarshal(raw, &o.members); err != nil || o.members == nil {
		return o, invalid(pointer, "is not a JSON object")
	}
	return o, nil
}

// invalid returns the error of params at a pointer, "" for the whole.
func invalid(pointer, message string) error {
	what := "params"
	if pointer != "" {
		what += " at " + pointer
	}
	return &core.Error{
		Code: core.CodeInvalid, Message: what + ": " + message,
		Violations: []core.Violation{{Pointer: pointer, Message: message}},
	}
}

// raw returns a member, nil if it is absent or null.
func (o object) raw(name string) json.RawMessage {
	raw := bytes.TrimSpace(o.members[name])
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// at returns the pointer of a member.
func (o object) at(name string) string { return core.Pointer(o.pointer, name) }

// text returns the first of the named string members that is present, and its name; "" for none.
func (o object) text(names ...string) (text, name string, err error) {
	for _, name := range names {
		raw := o.raw(name)
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", name, invalid(o.at(name), "is not a string")
		}
		return text, name, nil
	}
	return "", "", nil
}

// optionalText returns the first of the named members that is a non-empty string; it ignores other values.
func (o object) optionalText(names ...string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(o.raw(name), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// flag returns a boolean member.
func (o object) flag(name string) (bool, error) {
	switch raw := o.raw(name); string(raw) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid(o.at(name), "is not a boolean")
	}
}

// count returns a member that is a non-negative integer.
func (o object) count(name string) (int64, error) {
	raw := o.raw(name)
	if raw == nil {
		return 0, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > 1<<53 || n != math.Trunc(n) {
		return 0, invalid(o.at(name), "is not a whole number of 0 or more")
	}
	return int64(n), nil
}

// list returns the items of a member; nil if it is absent.
func (o object) list(name string) ([]json.RawMessage, error) {
	raw := o.raw(name)
	if raw == nil {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, invalid(o.at(name), "is not a list")
	}
	return items, nil
}

// rejectUnknown returns an error for members with other names.
func (o object) rejectUnknown(names []string) error {
	for name := range o.members {
		if slices.Contains(names, name) {
			continue
		}
		message := fmt.Sprintf("there is no %q", shown(name))
		if meant := core.Suggest(name, slices.Values(names)); meant != "" {
			message += fmt.Sprintf(", did you mean %q?", meant)
		}
		return invalid(o.at(shown(name)), message)
	}
	return nil
}

// item returns the pointer of a list item.
func item(list string, i int) string { return core.Pointer(list, strconv.Itoa(i)) }

// maxShown is the maximum length of client input in messages, in bytes.
const maxShown = 64

func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
