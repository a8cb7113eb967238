// Package kafka reads notifications from a Kafka topic and hands them, in batches, to whoever takes them; it commits what
// was taken and nothing else (CONTRACT section 1). It knows no event and no queue, declares the interface it needs, and
// must not import anything of tutti but internal/core.
package kafka
