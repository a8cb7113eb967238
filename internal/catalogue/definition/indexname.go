package definition

import (
	"strings"
	"unicode"
)

// maxIndexBytes leaves room for what is put behind an alias in the name of an index, of which Elasticsearch takes 255 bytes.
const maxIndexBytes = 240

// isIndexName reports whether a name is one that both engines take, and no name that is the engine's own, with a leading dot.
func isIndexName(name string) bool {
	bad := func(r rune) bool {
		return strings.ContainsRune(`\/*?"<>|,#: %`, r) || !unicode.IsPrint(r) || unicode.IsUpper(r) || unicode.ToLower(r) != r
	}
	return name != "" && len(name) <= maxIndexBytes && !strings.ContainsAny(name[:1], "._+-") && !strings.ContainsFunc(name, bad)
}
