package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tutti/internal/base/spelling"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

// placeholder is replaced by the granted value in the template of a scope.
const placeholder = "{value}"

// addAccess reads an access.json. An error in it is an error of the catalogue, and leaves a rule that denies everyone: a typo
// must not open restricted data. before is the number of violations before it.
func (d *draft) addAccess(file string, root *node, bad *fileError, before int) {
	d.definition.Access = &AccessRule{}
	d.rules++
	switch {
	case d.rules > 1:
		d.fail(file, "is a second access rule in the same folder", "keep one of them, as access.json")
	case bad != nil:
		d.fail(file, bad.what, bad.hint)
	default:
		rule := d.accessRule(file, root)
		if d.failed == before {
			d.definition.Access = rule
		}
	}
}

func (d *draft) accessRule(file string, root *node) *AccessRule {
	s := accessRule()
	for _, m := range root.members {
		k, known := s.key(m.name)
		if known {
			check(m.value, k.valueSchema, within("", m.name), &d.findings)
			continue
		}
		hint := "remove it: a rule has only field, scope and public"
		if near := spelling.Suggest(m.name, slices.Values(s.names())); near != "" {
			hint = "the nearest known key is " + near
		}
		d.failAt(within("", m.name), file, "is unknown", hint)
	}
	rule := &AccessRule{Field: root.member("field").string(), Scope: root.member("scope").string()}
	d.checkField(file, root.member("field"))
	d.checkScope(file, root.member("scope"))
	if public := root.member("public"); public != nil {
		filter, err := sqon.Parse(public.raw())
		if err != nil {
			d.failPublic(file, err)
		}
		rule.Public = &filter
	}
	return rule
}

func (d *draft) checkField(file string, n *node) {
	switch field := n.string(); {
	case n != nil && n.kind != kindText:
	case field == "":
		d.fail(file, "does not set field", `add "field": "<the path whose values scopes name>", such as "studyId"`)
	case strings.Contains("."+field+".", "..") || strings.ContainsFunc(field, isBlank):
		d.failAt("/field", file, quoted(field)+" is not the path of a field", `write a dotted path such as "studyId"`)
	}
}

func (d *draft) checkScope(file string, n *node) {
	const hint = `write it like "{value}.READ"`
	switch scope := n.string(); {
	case n != nil && n.kind != kindText:
	case scope == "":
		d.fail(file, "does not set scope", `add "scope": "{value}.READ"`)
	case strings.Count(scope, placeholder) != 1:
		d.failAt("/scope", file, quoted(scope)+" must hold {value} exactly once", hint)
	case strings.ContainsFunc(scope, isBlank) || strings.ContainsAny(strings.Replace(scope, placeholder, "", 1), "{}*"):
		d.failAt("/scope", file, quoted(scope)+" contains a space, a star, a bracket or a control character, which a scope cannot contain", hint)
	}
}

// isBlank reports whether a scope cannot contain a character: scopes are separated by spaces (RFC 6749, section 3.3).
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
}

// failPublic adds the errors of the filter with their pointers in the file.
func (d *draft) failPublic(file string, err error) {
	hint := core.HintOf(err)
	if hint == "" {
		hint = `fix the filter; null shows nothing to everyone, {} everything`
	}
	found, is := errors.AsType[*core.Error](err)
	if !is || len(found.Violations) == 0 {
		d.failAt("/public", file, "is not a filter: "+core.MessageOf(err), hint)
		return
	}
	for _, v := range found.Violations {
		d.failAt("/public"+v.Pointer, file, "is not a filter: "+v.Message, hint)
	}
}

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
