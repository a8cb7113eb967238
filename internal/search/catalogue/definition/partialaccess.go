package definition

import (
	"fmt"
	"slices"
	"strings"
)

// warnPartlyRestricted warns of an index that one catalogue restricts by an access rule and another does not.
func warnPartlyRestricted(definitions []Definition) []string {
	type catalogues struct{ guarded, open []string }
	byIndex := map[string]*catalogues{}
	for _, d := range definitions {
		of := byIndex[d.Index]
		if of == nil {
			of = &catalogues{}
			byIndex[d.Index] = of
		}
		switch {
		case d.Access != nil:
			of.guarded = append(of.guarded, quoted(d.ID))
		case d.Err == nil:
			of.open = append(of.open, quoted(d.ID))
		}
	}
	var warnings []string
	for index, of := range byIndex {
		if len(of.guarded) > 0 && len(of.open) > 0 {
			warnings = append(warnings, fmt.Sprintf("index %s has an access rule in %s but none in %s, whose readers see all documents",
				quoted(index), joinNames(of.guarded), joinNames(of.open)))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// joinNames joins names; of many only the first.
func joinNames(names []string) string {
	switch more := len(names) - maxNamed; {
	case more > 0:
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	case len(names) == 1:
		return names[0]
	default:
		last := len(names) - 1
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
}
