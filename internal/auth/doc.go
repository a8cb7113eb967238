// Package auth authenticates bearer tokens and returns what they grant: API keys, which are stored hashed, and JSON Web Tokens
// (CONTRACT section 6).
//
// It must not import other packages of tutti than core; the store of the keys is behind an interface.
package auth
