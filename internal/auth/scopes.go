package auth

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"tutti/internal/core"
)

// Scopes says how the scopes of a token are called (CONTRACT sections 6 and 9). The zero value is the default.
type Scopes struct {
	// System names the system: who holds the scope of its name and WriteSuffix may do everything. Default "tutti".
	System string
	// OrganizationPrefix stands before the name of an organization in its scopes. Default: nothing.
	OrganizationPrefix string
	// WriteSuffix and ReadSuffix stand behind the name. Defaults ".WRITE" and ".READ".
	WriteSuffix, ReadSuffix string
}

// validate refuses names under which one scope would mean two things.
func (s Scopes) validate() error {
	for _, part := range []string{s.System, s.OrganizationPrefix, s.WriteSuffix, s.ReadSuffix} {
		if !isScopeText(part) {
			return core.NewError(core.CodeInvalid, fmt.Sprintf("%q cannot be a part of a scope: it holds a space or a control character", part))
		}
	}
	if strings.HasSuffix(s.WriteSuffix, s.ReadSuffix) || strings.HasSuffix(s.ReadSuffix, s.WriteSuffix) {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the write suffix %q and the read suffix %q cannot be told apart", s.WriteSuffix, s.ReadSuffix),
			Hint: "choose suffixes of which none ends with the other",
		}
	}
	if organization, ok := strings.CutPrefix(s.System, s.OrganizationPrefix); ok && s.OrganizationPrefix != "" && organization != "" {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("the system scope would also be the write scope of an organization called %q", organization),
			Hint: "choose a system scope that does not begin with the organizations' prefix",
		}
	}
	return nil
}

func (s Scopes) withDefaults() Scopes {
	if s.System == "" {
		s.System = "tutti"
	}
	if s.WriteSuffix == "" {
		s.WriteSuffix = ".WRITE"
	}
	if s.ReadSuffix == "" {
		s.ReadSuffix = ".READ"
	}
	return s
}

// SystemScope returns the scope that allows everything.
func (s Scopes) SystemScope() string {
	s = s.withDefaults()
	return s.System + s.WriteSuffix
}

// WriteScope returns the scope that allows to write in an organization.
func (s Scopes) WriteScope(organization string) string {
	s = s.withDefaults()
	return s.OrganizationPrefix + organization + s.WriteSuffix
}

// ReadScope returns the scope that allows to read what an organization has not published.
func (s Scopes) ReadScope(organization string) string {
	s = s.withDefaults()
	return s.OrganizationPrefix + organization + s.ReadSuffix
}

// grant returns what scopes allow. The scope of the system is compared as a whole; with an organization of the system's
// name, which has the same scope unless there is a prefix, it means the system.
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

// organization returns the organization that a scope with a suffix is about.
func (s Scopes) organization(scope, suffix string) (string, bool) {
	rest, ok := strings.CutPrefix(scope, s.OrganizationPrefix)
	if !ok {
		return "", false
	}
	organization, ok := strings.CutSuffix(rest, suffix)
	return organization, ok && organization != ""
}

// check refuses a scope that would grant nothing, or less than it seems to: a star stands for no organization.
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
		hint = "there are no wildcards: give a scope for each organization, or " + s.SystemScope() + " for everything"
	}
	shown := []rune(strings.ToValidUTF8(scope, "\uFFFD"))
	return &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("%q is not a scope", string(shown[:min(len(shown), maxNameRunes)])), Hint: hint,
	}
}

// isScopeText reports whether text can stand in a scope: a list of scopes is separated by spaces (RFC 6749, section 3.3).
func isScopeText(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) || c == unicode.ReplacementChar })
}
