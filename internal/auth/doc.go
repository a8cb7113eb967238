// Package auth authenticates bearer tokens and returns what they grant: API keys, which are stored hashed, JSON Web Tokens, and opaque
// tokens that another server checks (CONTRACT section 6).
//
// It must not import other packages of tutti than core; the store of the keys is behind an interface.
package auth
