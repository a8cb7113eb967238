package auth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"tutti/internal/core"
)

// Scopes defines the names of scopes (CONTRACT sections 6 and 9). The zero value is the default.
type Scopes struct {
	// System and WriteSuffix form the scope that allows everything. Default "tutti".
	System string
	// OrganizationPrefix precedes the name of an organization in its scopes. Default: empty.
	OrganizationPrefix string
	// WriteSuffix and ReadSuffix follow the name. Defaults ".WRITE" and ".READ".
	WriteSuffix, ReadSuffix string
}

// validate returns CodeInvalid for names with which one scope would have two meanings.
func (s Scopes) validate() error {
	for _, part := range []string{s.System, s.OrganizationPrefix, s.WriteSuffix, s.ReadSuffix} {
		if !isScopeText(part) {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("%q cannot be a part of a scope: it contains a space or a control character", part))
		}
	}
	if strings.HasSuffix(s.WriteSuffix, s.ReadSuffix) || strings.HasSuffix(s.ReadSuffix, s.WriteSuffix) {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the write suffix %q and the read suffix %q are ambiguous", s.WriteSuffix, s.ReadSuffix),
			Hint: "choose suffixes where neither ends with the other",
		}
	}
	if organization, ok := strings.CutPrefix(s.System, s.OrganizationPrefix); ok && s.OrganizationPrefix != "" && organization != "" {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the system scope would also be the write scope of an organization called %q", organization),
			Hint: "choose a system scope that does not start with the organizations' prefix",
		}
	}
	return nil
}

func (s Scopes) withDefaults() Scopes {
	s.System = cmp.Or(s.System, "tutti")
	s.WriteSuffix = cmp.Or(s.WriteSuffix, ".WRITE")
	s.ReadSuffix = cmp.Or(s.ReadSuffix, ".READ")
	return s
}

// SystemScope returns the scope that allows everything.
func (s Scopes) SystemScope() string {
	s = s.withDefaults()
	return s.System + s.WriteSuffix
}

// WriteScope returns the scope that allows writing in an organization.
func (s Scopes) WriteScope(organization string) string {
	s = s.withDefaults()
	return s.OrganizationPrefix + organization + s.WriteSuffix
}

// ReadScope returns the scope that allows reading unpublished data of an organization.
func (s Scopes) ReadScope(organization string) string {
	s = s.withDefaults()
	return s.OrganizationPrefix + organization + s.ReadSuffix
}

// grant returns the Principal of scopes. The scope of the system is compared as a whole: without a prefix it is also the write scope
// of an organization with the system's name, and then means the system.
func (s Scopes) grant(id, name string, scopes []string) core.Principal {
	p := core.Principal{
		ID: id, Name: name, Scopes: slices.Clone(scopes), Writes: make(map[string]struct{}), Reads: make(map[string]struct{}),
	}
	for _, scope := range scopes {
		if scope == s.SystemScope() {
			p.System = true
			continue
		}
		if organization, ok := s.organization(scope, s.WriteSuffix); ok {
			p.Writes[organization] = struct{}{}
		}
		if organization, ok := s.organization(scope, s.ReadSuffix); ok {
			p.Reads[organization] = struct{}{}
		}
	}
	return p
}

// organization returns the organization of a scope with a suffix.
func (s Scopes) organization(scope, suffix string) (string, bool) {
	rest, ok := strings.CutPrefix(scope, s.OrganizationPrefix)
	if !ok {
		return "", false
	}
	organization, ok := strings.CutSuffix(rest, suffix)
	return organization, ok && organization != ""
}

// check returns CodeInvalid for a scope that would grant nothing, or less than it seems to: there are no wildcards.
func (s Scopes) check(scope string) error {
	if scope == s.SystemScope() {
		return nil
	}
	for _, suffix := range []string{s.WriteSuffix, s.ReadSuffix} {
		organization, ok := s.organization(scope, suffix)
		if ok && isScopeText(scope) && !strings.Contains(organization, "*") && core.ValidID("organization", organization) == nil {
			return nil
		}
	}
	hint := fmt.Sprintf("use %s, %s or %s", s.SystemScope(), s.WriteScope("<organization>"), s.ReadScope("<organization>"))
	if strings.Contains(scope, "*") {
		hint = "there are no wildcards: use one scope for each organization, or " + s.SystemScope() + " for everything"
	}
	shown := []rune(strings.ToValidUTF8(scope, "\uFFFD"))
	return &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("%q is not a scope", string(shown[:min(len(shown), maxNameRunes)])), Hint: hint,
	}
}

// isScopeText reports whether text can be part of a scope: a list of scopes is separated by spaces (RFC 6749, section 3.3).
func isScopeText(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) || c == unicode.ReplacementChar })
}
