package definition

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An access rule is valid only in access.json. Anything else that looks like one is an error: ignoring it would leave data open
// that was meant to be restricted.

const strayHint = "rename it to access.json if it is a rule, and otherwise give it another name"

// denyAll sets a rule that denies everyone if there is none. The catalogue has a violation as well.
func (d *draft) denyAll() {
	if d.definition.Access == nil {
		d.definition.Access = &AccessRule{}
	}
}

// rejectStrays adds violations for unread entries that may be a misnamed access.json. If there is an access.json, backups by an
// editor or a copy are only a warning.
func (d *draft) rejectStrays() {
	isThere := slices.ContainsFunc(d.files, func(name string) bool { return isFile(name, accessFile) })
	for _, name := range d.strays {
		if isThere && isBackup(name) {
			d.warn(d.file(name) + " is not read: access.json applies")
			continue
		}
		d.fail(d.file(name), "is not read: an access rule is valid only in access.json", strayHint)
		d.denyAll()
	}
}

// rejectRule adds a violation for an access rule in a file other than access.json, and removes the rule. A file with a name
// similar to access.json must clearly be a configuration.
func (d *draft) rejectRule(name, file string, root *node) {
	known, isOfRule := isKnown(), isOfRule()
	strange := func(m member) bool { return !known(m) }
	switch {
	case !slices.ContainsFunc(root.members, isOfRule):
		if !resemblesAccessFile(name) || len(root.members) > 0 && !slices.ContainsFunc(root.members, strange) {
			return
		}
		d.fail(file, "has a name similar to access.json, the only file for an access rule", strayHint)
	case !isFile(name, baseFile) && !slices.ContainsFunc(root.members, known):
		d.fail(file, "contains an access rule, which is valid only in access.json", "rename it to access.json")
	default:
		for _, m := range root.members {
			if isOfRule(m) {
				d.failAt(within("", m.name), file, "belongs to an access rule, which is valid only in access.json", "move the rule to access.json, or remove it")
			}
		}
	}
	d.denyAll()
	root.members = slices.DeleteFunc(root.members, isOfRule)
}

// isKnown returns a function that reports whether a top-level member of a configuration is a known key.
func isKnown() func(member) bool {
	s := configuration()
	return func(m member) bool {
		_, is := s.key(m.name)
		_, was := s.oldKey(m.name)
		return is || was
	}
}

// isOfRule returns a function that reports whether a top-level member of a configuration is unknown and may be meant as an access
// rule or a part of one.
func isOfRule() func(member) bool {
	known, s := isKnown(), accessRule()
	return func(m member) bool {
		_, is := s.key(strings.ToLower(strings.TrimSpace(m.name)))
		return (is || resemblesAccessFile(m.name)) && !known(m)
	}
}

// resemblesAccessFile reports whether a name may be meant as access.json: it has that prefix, or is one typo away.
func resemblesAccessFile(name string) bool {
	name = strings.ToLower(strings.TrimLeftFunc(strings.TrimSpace(name), func(r rune) bool { return r == '.' || unicode.IsSpace(r) }))
	stem, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, "access") || oneEditApart(stem, "access") || oneEditApart(name, accessFile)
}

// isBackup reports whether a name is access.json with a prefix or suffix, for example access.json~, .#access.json, ._access.json
// and access.json.bak. With a letter after it, as in access.jsonc, it is another kind of file.
func isBackup(name string) bool {
	before, behind, found := strings.Cut(strings.ToLower(strings.TrimSpace(name)), accessFile)
	next, _ := utf8.DecodeRuneInString(behind)
	return found && (behind == "" && (before == ".#" || before == "._") || behind != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next))
}

// oneEditApart reports whether two strings differ by at most one missing, additional or changed character, or by two swapped
// neighbours.
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
