// Package connection has how a Kafka cluster is reached: TLS and SASL for a client of it, and why a connection failed, in one sentence that
// names the key to change. Of tutti it must import only internal/core and internal/base/tlsconfig.
package connection
