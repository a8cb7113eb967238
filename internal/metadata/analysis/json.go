package analysis

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
)

const (
	// maxDepth is the maximum nesting depth of submitted JSON.
	maxDepth = 256
	// fewMembers is the number of members up to which duplicate names are found by pairwise comparison.
	fewMembers = 16
)

// parseObject checks that body is one unambiguous JSON object in UTF-8: nested at most maxDepth levels, no object with a duplicate
// member. It returns the object without white space between the values, which are unchanged. Errors are CodeInvalid,
// payload.parsing.
func parseObject(body []byte) (string, error) {
	if !utf8.Valid(body) {
		return "", parsingError("the body is not valid UTF-8")
	}
	if jsontext.TooDeep(body, maxDepth) {
		return "", parsingError("the body is nested more than " + strconv.Itoa(maxDepth) + " levels deep")
	}
	if !json.Valid(body) {
		var whole json.RawMessage // Valid does not return the position
		if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &whole)); ok && syntax.Offset > 0 {
			return "", parsingError("the body is not valid JSON at byte " + strconv.FormatInt(syntax.Offset, 10))
		}
		return "", parsingError("the body is not valid JSON")
	}
	compact, _ := jsontext.AppendCompact(make([]byte, 0, len(body)), body)
	if compact[0] != '{' {
		return "", parsingError("the body is not a JSON object")
	}
	doc := string(compact)
	if name, twice := duplicateMember(doc); twice {
		return "", parsingError("the member " + strconv.Quote(Shortened(name)) + " appears twice in one object")
	}
	return doc, nil
}

// duplicateMember returns the name that two members of an object have, of the first object in which this is so when it ends. doc is valid
// JSON without white space between the values, in which only the name of a member is followed by a colon.
func duplicateMember(doc string) (string, bool) {
	var names []string // of the open objects, the outermost object first
	var open []int     // where the names of each of them begin
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c > '"' && c < '{': // most bytes that are not in a string
		case c == '"':
			end, escaped, _ := jsontext.ScanString(doc, i)
			if end < len(doc) && doc[end] == ':' {
				name := doc[i+1 : end-1]
				if escaped {
					name = jsontext.Unescape(name)
				}
				names = append(names, name)
			}
			i = end
			continue
		case c == '{':
			open = append(open, len(names))
		case c == '}':
			last := len(open) - 1
			if name, twice := duplicateName(names[open[last]:]); twice {
				return name, true
			}
			names, open = names[:open[last]], open[:last]
		}
		i++
	}
	return "", false
}

// duplicateName returns a name that occurs twice.
func duplicateName(names []string) (string, bool) {
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

// member is a member of an object: key and value are its JSON text, name is the decoded key.
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

// appendMembers appends members to an open object; dst ends with "{" or a member.
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

// appendMerged appends the result of applying a JSON merge patch (RFC 7396) to target. Numbers and strings keep their notation.
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
	if target.IsObject() {
		target.ForEach(func(key, value gjson.Result) bool {
			change, changed := changes[key.Str]
			delete(changes, key.Str)
			switch {
			case !changed:
				dst = appendMember(dst, key.Raw, value.Raw)
			case change.Type != gjson.Null:
				dst = appendMerged(appendMember(dst, key.Raw, ""), value, change)
			}
			return true
		})
	}
	patch.ForEach(func(key, value gjson.Result) bool {
		if _, left := changes[key.Str]; left && value.Type != gjson.Null {
			dst = appendMerged(appendMember(dst, key.Raw, ""), gjson.Result{}, value)
		}
		return true
	})
	return append(dst, '}')
}

// quoteJSON returns text as a JSON string.
func quoteJSON(text string) string { return string(jsontext.AppendString(nil, text)) }
