package counts

import (
	"fmt"
	"slices"
	"strings"

	"tutti/consumers/sweep"
	"tutti/internal/core"
)

// maxChangedFields is how many fields a sentence about changed fields names of each kind.
const maxChangedFields = 5

// changedFields returns which fields no record has any more since the kinds before were counted, and which are new, as part of a sentence;
// "" if none is gone.
func changedFields(before, now core.Kinds) string {
	if !before.Whole() || !now.Whole() || before.Records() == 0 || now.Records() == 0 {
		return ""
	}
	gone, added := onlyIn(before, now), onlyIn(now, before)
	switch {
	case len(gone) == 0:
		return ""
	case len(added) == 0:
		return "no record has " + listFields(gone) + " any more"
	default:
		return "no record has " + listFields(gone) + " any more (new: " + listFields(added) + ")"
	}
}

// onlyIn returns the paths that many of the records of all have and none of those of others, without those below another one.
func onlyIn(all, others core.Kinds) []string {
	known := make(map[string]struct{})
	for path := range others.All() {
		known[path] = struct{}{}
	}
	var only []string
	many := sweep.GuardShare * float64(all.Records())
	for path, p := range all.All() {
		if _, is := known[path]; is || float64(max(p.Objects, p.Numbers, p.Booleans, p.Texts)) < many {
			continue
		}
		if !slices.ContainsFunc(only, func(above string) bool { return strings.HasPrefix(path, above+".") }) {
			only = append(only, path)
		}
	}
	return only
}

func listFields(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxChangedFields)], ", ")
	if more := len(paths) - maxChangedFields; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
