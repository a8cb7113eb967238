package definition

import (
	"errors"
	"slices"
	"strings"
	"unicode"

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
		if near := core.Suggest(m.name, slices.Values(s.names())); near != "" {
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
