package definition

import (
	"strings"
	"unicode"
)

// maxIndexBytes leaves room for the suffix of an alias in an index name, which Elasticsearch limits to 255 bytes.
const maxIndexBytes = 240

// isIndexName reports whether both engines accept a name, and it is not an internal one with a leading dot.
func isIndexName(name string) bool {
	bad := func(r rune) bool {
		return strings.ContainsRune(`\/*?"<>|,#: %`, r) || !unicode.IsPrint(r) || unicode.IsUpper(r) || unicode.ToLower(r) != r
	}
	return name != "" && len(name) <= maxIndexBytes && !strings.ContainsAny(name[:1], "._+-") && !strings.ContainsFunc(name, bad)
}
