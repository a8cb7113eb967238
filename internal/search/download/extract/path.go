package extract

import (
	"strings"

	"tutti/internal/index/mapping"
)

// SourcePath returns the path in documents of the values of the field at an engine's path: a multi-field has the values of its
// parent. False for a field that no document holds, because the engine computes it.
func SourcePath(tree *mapping.Field, path string) (string, bool) {
	if tree.Lookup(path) == nil {
		return "", false
	}
	for {
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return path, true
		}
		above := tree.Lookup(path[:dot])
		if above == nil || above.Container() {
			return path, true
		}
		path = path[:dot]
	}
}
