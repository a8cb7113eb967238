package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxNamed is how many folders a message names.
const maxNamed = 5

// identify returns each draft its id and tells what is odd about them. A draft keeps the id that it asks for when that is
// known, no route's, and nobody else's. Any other draft is listed, as failed, under its folder's name; where that is taken,
// under the name with -2, -3 and so on, so that no sound catalogue ever gives way.
func identify(drafts []*draft, reserved []string) []string {
	claims := map[string][]*draft{}
	for _, d := range drafts {
		if d.asks() {
			claims[d.wish] = append(claims[d.wish], d)
		}
	}
	taken := map[string]bool{}
	var left []*draft
	for _, d := range drafts {
		switch {
		case !d.asks():
		case slices.Contains(reserved, d.wish):
			d.refuse(fmt.Sprintf("%s cannot be the id of the catalogue in %s, because a route of the server is called so: set another catalogId",
				quoted(d.wish), d.label()))
		case len(claims[d.wish]) > 1:
			d.refuse(fmt.Sprintf("%s is the id of several catalogues, those in %s: give each its own catalogId",
				quoted(d.wish), labels(claims[d.wish])))
		default:
			d.definition.ID, taken[d.wish] = d.wish, true
			continue
		}
		left = append(left, d)
	}
	for _, d := range left {
		d.definition.ID = free(listed(d.name), taken)
		taken[d.definition.ID] = true
	}
	return alike(drafts)
}

// asks reports whether the id is known that the folder wants. A folder that could not be read in whole claims nothing.
func (d *draft) asks() bool { return d.wish != "" && !d.broken }

// refuse makes the id the first fault: it must be mended whatever else is.
func (d *draft) refuse(message string) {
	d.failed++
	d.faults = append([]fault{{"/catalogId", message, "set another catalogId in " + d.file(baseFile)}}, d.faults...)
}

func labels(drafts []*draft) string {
	names := make([]string, len(drafts))
	for i, d := range drafts {
		names[i] = d.label()
	}
	return several(names)
}

// listed makes a folder's name an id that can be listed.
func listed(name string) string {
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

// free returns the id, or the first of id-2, id-3 and so on that is not taken.
func free(id string, taken map[string]bool) string {
	found := id
	for i := 2; taken[found]; i++ {
		found = fmt.Sprintf("%s-%d", id, i)
	}
	return found
}

// alike warns of ids that differ only in case: they are different, and easily mistaken for each other.
func alike(drafts []*draft) []string {
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
