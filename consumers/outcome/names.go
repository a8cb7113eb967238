package outcome

import (
	"fmt"
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// Parts of the reasons of engines for names of fields that they do not accept.
const reservedReason = "is a metadata field and cannot be added inside a document"

var blankReasons = [...]string{
	"ield name cannot ",                           // be an empty string, contain only whitespace, contain only dots
	"object field cannot contain only whitespace", // OpenSearch, Elasticsearch 7
	"field starting or ending with a [.]",         // spaces beside a dot
	"name cannot be empty",                        // OpenSearch, Elasticsearch 7
}

// nameHint returns the hint for a document that was rejected because of the name of a field, "" for other rejections.
func nameHint(result core.Result) string {
	var document []byte
	if result.Rejected != nil {
		document = result.Rejected.Bytes
	}
	const rename = "rename it in the record, then retry"
	field := rejectedField(result.Reason)
	if strings.Contains(result.Reason, reservedReason) {
		return fmt.Sprintf("the name of the field %q is reserved for the index itself: %s", field, rename)
	}
	for _, reason := range blankReasons {
		if !strings.Contains(result.Reason, reason) {
			continue
		}
		if path, found := findName(document, "", func(_, name string, _ []byte) bool { return blank(name) }); found {
			return fmt.Sprintf("the name of the field %q is empty, or has nothing before, between or after its dots: %s", Truncate(path, maxFieldBytes), rename)
		}
		return "the name of a field is empty, or has nothing before, between or after its dots: " + rename
	}
	path, found := findName(document, "", func(parent, name string, _ []byte) bool {
		return field != "" && dottedBelow(parent, name, field)
	})
	if !found {
		return ""
	}
	return fmt.Sprintf("the name %q stands for a field of the object %q, which is a single value in the index: %s", Truncate(path, maxFieldBytes), field, rename)
}

// blank reports whether a part of a name is empty or white space.
func blank(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if strings.TrimSpace(part) == "" {
			return true
		}
	}
	return false
}

// dottedBelow reports whether a name with dots, in the object at the path parent, is below field.
func dottedBelow(parent, name, field string) bool {
	rest, below := strings.CutPrefix(pathOf(parent, name), field+".")
	return below && len(rest) < len(name)
}

// pathOf returns the path of a member of the object at parent, which is "" for the document itself.
func pathOf(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// findName returns the path of the first member of a document, or of one of its objects, for which is returns true.
func findName(document []byte, parent string, is func(parent, name string, value []byte) bool) (path string, found bool) {
	jsontext.Members(document, 0, func(raw []byte, _ bool, v jsontext.Span) bool {
		name := jsontext.Unescape(raw)
		path = pathOf(parent, name)
		if found = is(parent, name, v.Of(document)); found {
			return false
		}
		at := path
		return jsontext.Items(document, v, func(item jsontext.Span) bool {
			path, found = findName(item.Of(document), at, is)
			return !found
		})
	})
	return path, found
}
