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
