package core

import "time"

// Principal is the authenticated caller of a request (CONTRACT section 6).
type Principal struct {
	// ID is unique among all principals: key:<id> for an API key, jwt:<issuer>
	//
	// <subject> for a token. It identifies the owner of stored objects.
	ID string
	// Name is for logs: the name of an API key or the subject of a JWT.
	Name string
	// System is true for a holder of the system's scope, who may do everything.
	System bool
	// Scopes are all scopes of the token.
	Scopes []string
	// Writes and Reads are the organizations whose write and read scopes the token grants.
	Writes, Reads map[string]struct{}
}

// MayWrite reports whether p may index, submit and publish in an organization.
func (p Principal) MayWrite(organization string) bool {
	_, granted := p.Writes[organization]
	return p.System || granted
}

// MayRead reports whether p may read the unpublished analyses of an organization: whoever submits analyses reads them before they
// are published.
func (p Principal) MayRead(organization string) bool {
	_, granted := p.Reads[organization]
	return granted || p.MayWrite(organization)
}

// APIKey is an API key without its secret.
type APIKey struct {
	// ID is public: the first part of the key, used in lists and logs.
	ID string
	// Name describes the purpose of the key.
	Name   string
	Scopes []string
	// CreatedAt, ExpiresAt and RevokedAt are in UTC; zero for a key that does not expire or is not revoked.
	CreatedAt, ExpiresAt, RevokedAt time.Time
	// Hash is the SHA-256 of the secret part, 32 bytes.
	Hash []byte
}

// Caller identifies the client of a request for limits that callers share.
type Caller struct {
	// ID is Principal.ID, or the address of an anonymous caller.
	ID string
	// Known is true for a Principal. There are few of them, but any number of addresses.
	Known bool
	// Group is the account that anonymous callers share beside known ones; empty if there are no known ones.
	Group string
}

// Account is an account that a Caller's usage counts towards, with its maximum.
type Account struct {
	ID  string
	Max int64
}

// Accounts returns the accounts that a Caller's usage of a limit counts towards, the largest first: a caller may use half of the
// limit; a group may use half, and each caller in it half of that. Each maximum is at least 1.
func (c Caller) Accounts(limit int64) []Account {
	half := max(limit/2, 1)
	if c.Group == "" {
		return []Account{{c.ID, half}}
	}
	return []Account{{c.Group, half}, {c.ID, max(half/2, 1)}}
}

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
