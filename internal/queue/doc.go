// Package queue owns the streams of tutti: Requests on REQUESTS, what tutti gave up on on DEAD_LETTERS, when signed
// notifications were first seen on SEEN_SIGNATURES, and jobs in a key-value bucket (DESIGN, Data). Together with queue/embedded, which it must not import, it is the only user of nats;
// of tutti it imports core alone.
package queue
