package core

// DefaultAccess is the access to a catalogue without an access rule (CONTRACT section 6). The zero value is AccessPublic.
type DefaultAccess string

// Values of DefaultAccess.
const (
	// AccessPublic: anyone, without a token.
	AccessPublic DefaultAccess = "public"
	// AccessAuthenticated: anyone with a valid token.
	AccessAuthenticated DefaultAccess = "authenticated"
	// AccessDeny: holders of the system's scope.
	AccessDeny DefaultAccess = "deny"
)

// Allows reports whether p may read. The zero Principal is anonymous. An unknown value denies.
func (a DefaultAccess) Allows(p Principal) bool {
	switch a {
	case "", AccessPublic:
		return true
	case AccessAuthenticated:
		return p.System || p.ID != ""
	default:
		return p.System
	}
}
