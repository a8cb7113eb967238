package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxNamed is the maximum number of folders in a message.
const maxNamed = 5

// identify assigns each draft its ID and returns warnings about IDs. A draft gets its configured ID if that is known, not
// reserved for a route, and unique. Any other draft is listed as failed under its folder's name, with the suffix -2, -3 and so on
// if that is taken, so that a valid catalogue always keeps its ID.
func identify(drafts []*draft, reserved []string) []string {
	claims := map[string][]*draft{}
	for _, d := range drafts {
		if d.hasWantedID() {
			claims[d.wantedID] = append(claims[d.wantedID], d)
		}
	}
	taken := map[string]bool{}
	var left []*draft
	for _, d := range drafts {
		switch {
		case !d.hasWantedID():
		case slices.Contains(reserved, d.wantedID):
			d.rejectID(fmt.Sprintf("%s cannot be the id of the catalogue in %s, because it is the name of a server route: set another catalogId",
				quoted(d.wantedID), d.label()))
		case len(claims[d.wantedID]) > 1:
			d.rejectID(fmt.Sprintf("%s is the id of several catalogues, those in %s: give each its own catalogId",
				quoted(d.wantedID), labels(claims[d.wantedID])))
		default:
			d.definition.ID, taken[d.wantedID] = d.wantedID, true
			continue
		}
		left = append(left, d)
	}
	for _, d := range left {
		d.definition.ID = freeID(listableID(d.name), taken)
		taken[d.definition.ID] = true
	}
	return warnSimilarIDs(drafts)
}

// hasWantedID reports whether the configured ID is known. A folder that could not be read completely claims no ID.
func (d *draft) hasWantedID() bool { return d.wantedID != "" && !d.broken }

// rejectID makes the ID the first violation: it must be fixed in any case.
func (d *draft) rejectID(message string) {
	d.failed++
	d.violations = append([]violation{{"/catalogId", message, "set another catalogId in " + d.file(baseFile)}}, d.violations...)
}

func labels(drafts []*draft) string {
	names := make([]string, len(drafts))
	for i, d := range drafts {
		names[i] = d.label()
	}
	return joinNames(names)
}

// listableID converts a folder's name to a valid ID.
func listableID(name string) string {
	id := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, name)
	if id == "" || id == "." || id == ".." || id == "/" {
		return "catalogue"
	}
	return id
}

// freeID returns the ID, or the first free one with the suffix -2, -3 and so on.
func freeID(id string, taken map[string]bool) string {
	found := id
	for i := 2; taken[found]; i++ {
		found = fmt.Sprintf("%s-%d", id, i)
	}
	return found
}

// warnSimilarIDs warns of IDs that differ only in case: they are different, but easily confused.
func warnSimilarIDs(drafts []*draft) []string {
	same := map[string][]string{}
	for _, d := range drafts {
		key := strings.ToLower(d.definition.ID)
		same[key] = append(same[key], quoted(d.definition.ID))
	}
	var warnings []string
	for _, ids := range same {
		if len(ids) > 1 {
			slices.Sort(ids)
			warnings = append(warnings, "the ids "+strings.Join(ids, " and ")+" differ only in case")
		}
	}
	slices.Sort(warnings)
	return warnings
}
