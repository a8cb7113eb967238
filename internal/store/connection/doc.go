// Package connection connects to PostgreSQL, with files of TLS that are read again for each connection. Its errors name the key to change.
// Of tutti it must import only internal/core and internal/base/tlsconfig.
package connection
