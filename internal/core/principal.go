package core

import "time"

// Principal is who asks, as its token says (CONTRACT section 6).
type Principal struct {
	// ID is unique among all who can ask: key:<id> of an API key, jwt:<issuer>|<subject> of a token. What somebody owns is
	// theirs by it.
	ID string
	// Name is what logs call it: the name of an API key or the subject of a JWT.
	Name string
	// System is true for a holder of the system's scope, who may do everything.
	System bool
	// Scopes are all that the token grants.
	Scopes []string
	// Writes and Reads are the organizations whose write and read scopes the token grants.
	Writes, Reads map[string]struct{}
}

// MayWrite reports whether p may index, submit and publish in an organization.
func (p Principal) MayWrite(organization string) bool {
	_, granted := p.Writes[organization]
	return p.System || granted
}

// MayRead reports whether p may read the unpublished analyses of an organization.
func (p Principal) MayRead(organization string) bool {
	_, granted := p.Reads[organization]
	return p.System || granted
}

// APIKey is an API key without its secret.
type APIKey struct {
	// ID is public: it is the first part of the key, and names it in lists and logs.
	ID string
	// Name says what the key is for.
	Name   string
	Scopes []string
	// CreatedAt, ExpiresAt and RevokedAt are in UTC; zero for a key that does not expire, that is not revoked.
	CreatedAt, ExpiresAt, RevokedAt time.Time
	// Hash is the SHA-256 of the secret part, 32 bytes.
	Hash []byte
}
