package schemas

import (
	"slices"
	"strings"

	"tutti/internal/core"
)

// fileTypes finds the files whose type is not allowed; no allowed types allow any. Types are compared exactly.
func fileTypes(found *faults, allowed []string, tree *value) {
	files := tree.member("files")
	if len(allowed) == 0 || files == nil {
		return
	}
	shown := make([]string, 0, len(allowed))
	for _, t := range allowed {
		shown = append(shown, quoted(t))
	}
	for i := range files.items() {
		fileType := files.items()[i].member("fileType")
		if fileType == nil || fileType.kind != kindString || slices.Contains(allowed, fileType.text) {
			continue
		}
		message := quoted(fileType.text) + " is not one of the file types of this analysis type: " + listed(shown)
		if near := slices.IndexFunc(allowed, func(t string) bool { return strings.EqualFold(t, fileType.text) }); near >= 0 {
			message += "; only the case differs from " + quoted(allowed[near])
		}
		found.add(core.Violation{Pointer: "/files/" + decimal(i) + "/fileType", Message: message, Keyword: "fileTypes"})
	}
}
