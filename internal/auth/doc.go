// Package auth tells who a bearer token belongs to and what it grants: API keys, which are kept hashed, and JSON Web Tokens
// (CONTRACT section 6).
//
// It must not import other packages of tutti than core; what keeps the keys is behind an interface.
package auth
