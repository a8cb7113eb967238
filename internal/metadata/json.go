package metadata

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

const (
	// maxDepth is how deep what a client sends may be nested.
	maxDepth = 256
	// fewMembers is up to how many members the names of an object are compared one by one.
	fewMembers = 16
)

// parseObject checks that body is one JSON object in UTF-8 that means the same to everybody who reads it: not nested too
// deep, and no object with two members of one name. It returns it without white space between the values, which are as
// sent. Errors are CodeInvalid, payload.parsing.
func parseObject(body []byte) (string, error) {
	if !utf8.Valid(body) {
		return "", unparsed("the body is not valid UTF-8")
	}
	if core.TooDeep(body, maxDepth) {
		return "", unparsed("the body is nested more than " + strconv.Itoa(maxDepth) + " levels deep")
	}
	if !json.Valid(body) {
		var whole json.RawMessage // Valid does not say where
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &whole)); ok && syntax.Offset > 0 {
			return "", unparsed("the body is not valid JSON at byte " + strconv.FormatInt(syntax.Offset, 10))
		}
		return "", unparsed("the body is not valid JSON")
	}
	w := walk{doc: compact(body)}
	if w.doc[0] != '{' {
		return "", unparsed("the body is not a JSON object")
	}
	if err := w.value(); err != nil {
		return "", err
	}
	return w.doc, nil
}

// compact returns a valid JSON text without the white space between its values. Unlike json.Compact it makes one copy.
func compact(text []byte) string {
	var doc strings.Builder
	doc.Grow(len(text))
	start, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case c == '\\': // only strings have it
			i++
		case !inString && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			doc.Write(text[start:i])
			start = i + 1
		}
	}
	doc.Write(text[start:])
	return doc.String()
}

// walk goes through a valid JSON text without white space between the values.
type walk struct {
	doc   string
	at    int
	names []string // of the objects that are open, the outermost first
}

func (w *walk) value() error {
	switch w.doc[w.at] {
	case '{':
		return w.container('}')
	case '[':
		return w.container(']')
	case '"':
		w.text()
		return nil
	}
	for w.at < len(w.doc) && w.doc[w.at] != ',' && w.doc[w.at] != ']' && w.doc[w.at] != '}' {
		w.at++
	}
	return nil
}

func (w *walk) container(end byte) error {
	first := len(w.names)
	w.at++
	for w.doc[w.at] != end {
		if w.doc[w.at] == ',' {
			w.at++
		}
		if end == '}' {
			w.names = append(w.names, w.text())
			w.at++ // the colon
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.at++
	if name, twice := repeated(w.names[first:]); twice {
		return unparsed("the member " + strconv.Quote(shortened(name)) + " stands twice in one object")
	}
	w.names = w.names[:first]
	return nil
}

// text goes past a string and returns what it says.
func (w *walk) text() string {
	start, escaped := w.at, false
	for w.at++; w.doc[w.at] != '"'; w.at++ {
		if w.doc[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at++
	if escaped {
		return gjson.Parse(w.doc[start:w.at]).Str
	}
	return w.doc[start+1 : w.at-1]
}

// repeated returns a name that is there twice.
func repeated(names []string) (string, bool) {
	if len(names) <= fewMembers {
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return name, true
			}
		}
		return "", false
	}
	seen := make(map[string]struct{}, len(names))
	for _, name := range names {
		if _, twice := seen[name]; twice {
			return name, true
		}
		seen[name] = struct{}{}
	}
	return "", false
}

// member is a member of an object: key and value are its JSON text, name is what key says.
type member struct {
	name, key, value string
}

// membersOf returns the members of an object.
func membersOf(object gjson.Result) []member {
	members := make([]member, 0, fewMembers)
	object.ForEach(func(key, value gjson.Result) bool {
		members = append(members, member{name: key.Str, key: key.Raw, value: value.Raw})
		return true
	})
	return members
}

// appendMembers appends members to the inside of an object; dst ends with a "{" or with a member.
func appendMembers(dst []byte, members []member) []byte {
	for _, m := range members {
		dst = appendMember(dst, m.key, m.value)
	}
	return dst
}

func appendMember(dst []byte, key, value string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, key...)
	dst = append(dst, ':')
	return append(dst, value...)
}

// appendMerged appends target changed by a JSON merge patch (RFC 7396). Numbers and texts stay as they were written.
func appendMerged(dst []byte, target, patch gjson.Result) []byte {
	if !patch.IsObject() {
		return append(dst, patch.Raw...)
	}
	changes := map[string]gjson.Result{}
	patch.ForEach(func(key, value gjson.Result) bool {
		changes[key.Str] = value
		return true
	})
	dst = append(dst, '{')
	begin := func(key string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
	}
	if target.IsObject() {
		target.ForEach(func(key, value gjson.Result) bool {
			change, changed := changes[key.Str]
			delete(changes, key.Str)
			switch {
			case !changed:
				begin(key.Raw)
				dst = append(dst, value.Raw...)
			case change.Type != gjson.Null:
				begin(key.Raw)
				dst = appendMerged(dst, value, change)
			}
			return true
		})
	}
	patch.ForEach(func(key, value gjson.Result) bool {
		if _, left := changes[key.Str]; left && value.Type != gjson.Null {
			begin(key.Raw)
			dst = appendMerged(dst, gjson.Result{}, value)
		}
		return true
	})
	return append(dst, '}')
}

// quoted returns text as JSON.
func quoted(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c > '~' }) < 0 {
		return `"` + text + `"`
	}
	return string(gjson.AppendJSONString(nil, text))
}
