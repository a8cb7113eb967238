// Package connection connects to PostgreSQL: with files of TLS that are read again for each connection, with time-outs, directly or through a
// pooler, and again after a connection was lost. Its errors name the key to change.
// Of tutti it must import only internal/core, internal/base/retry and internal/base/tlsconfig.
package connection
