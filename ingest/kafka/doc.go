// Package kafka reads notifications from a Kafka topic and passes them, in batches, to a Handler; it commits only the
// offsets of handled messages (CONTRACT section 1). It does not decode events, declares the interface it needs, and
// of tutti must import only its connection and internal/core.
package kafka
