package definition

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An access rule counts in access.json alone. Whatever else looks like one is a fault: what is not read, or read and ignored,
// would leave open what somebody meant to close.

const strayHint = "rename it to access.json if it is a rule, and otherwise give it another name"

// denyAll leaves a rule that nobody passes where there is none. The catalogue has a fault besides.
func (d *draft) denyAll() {
	if d.definition.Access == nil {
		d.definition.Access = &AccessRule{}
	}
}

// rejectStrays makes faults of entries that are not read and may have been meant as access.json. Beside one, what an editor or
// a copy left of it is only told.
func (d *draft) rejectStrays() {
	isThere := slices.ContainsFunc(d.files, func(name string) bool { return isFile(name, accessFile) })
	for _, name := range d.strays {
		if isThere && isBackup(name) {
			d.warn(d.file(name) + " is not read: access.json counts")
			continue
		}
		d.fail(d.file(name), "is not read: an access rule counts in access.json alone", strayHint)
		d.denyAll()
	}
}

// rejectRule makes a fault of an access rule in a file other than access.json, and takes it out. A file whose name is nearly
// access.json must be a configuration without doubt.
func (d *draft) rejectRule(name, file string, root *node) {
	known, isOfRule := isKnown(), isOfRule()
	strange := func(m member) bool { return !known(m) }
	switch {
	case !slices.ContainsFunc(root.members, isOfRule):
		if !resemblesAccessFile(name) || len(root.members) > 0 && !slices.ContainsFunc(root.members, strange) {
			return
		}
		d.fail(file, "is called much like access.json, where alone an access rule counts", strayHint)
	case !isFile(name, baseFile) && !slices.ContainsFunc(root.members, known):
		d.fail(file, "holds an access rule, which counts in access.json alone", "rename it to access.json")
	default:
		for _, m := range root.members {
			if isOfRule(m) {
				d.failAt(within("", m.name), file, "belongs to an access rule, which counts in access.json alone", "move the rule to access.json, or take it away")
			}
		}
	}
	d.denyAll()
	root.members = slices.DeleteFunc(root.members, isOfRule)
}

// isKnown tells of a member at the top of a configuration whether it has a meaning there.
func isKnown() func(member) bool {
	s := configuration()
	return func(m member) bool {
		_, is := s.key(m.name)
		_, was := s.oldKey(m.name)
		return is || was
	}
}

// isOfRule tells of a member at the top of a configuration whether it has no meaning there, and may have been meant for an
// access rule or as one.
func isOfRule() func(member) bool {
	known, s := isKnown(), accessRule()
	return func(m member) bool {
		_, is := s.key(strings.ToLower(strings.TrimSpace(m.name)))
		return (is || resemblesAccessFile(m.name)) && !known(m)
	}
}

// resemblesAccessFile reports whether a name may have been meant as access.json: it begins so, or is one slip of the pen away.
func resemblesAccessFile(name string) bool {
	name = strings.ToLower(strings.TrimLeftFunc(strings.TrimSpace(name), func(r rune) bool { return r == '.' || unicode.IsSpace(r) }))
	stem, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, "access") || oneEditApart(stem, "access") || oneEditApart(name, accessFile)
}

// isBackup reports whether a name is access.json with more before or behind it, as access.json~, .#access.json, ._access.json and
// access.json.bak are. A letter behind it, as in access.jsonc, makes it another kind of file.
func isBackup(name string) bool {
	before, behind, found := strings.Cut(strings.ToLower(strings.TrimSpace(name)), accessFile)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && (behind == "" && (before == ".#" || before == "._") || behind != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next))
}

// oneEditApart reports whether two texts are equal but for one character that is missing, too much or another, or for two neighbours
// that changed places.
func oneEditApart(a, b string) bool {
	x, y := []rune(a), []rune(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return len(x) <= 1 && len(y) <= 1 || len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
}
