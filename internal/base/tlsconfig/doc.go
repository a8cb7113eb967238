// Package tlsconfig has what all outgoing connections share: TLS settings from files, which are read again when they change, and why a
// connection failed, in one sentence that names the key to change. Of tutti it must import only internal/core.
package tlsconfig
