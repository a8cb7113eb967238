// Package queue owns the streams of tutti: Requests in REQUESTS, dead letters in DEAD_LETTERS, the signatures of
// notifications in SEEN_SIGNATURES, and jobs in a key-value bucket (DESIGN, Data). Only it, its sub-packages and
// queue/embedded, which it must not import, use nats; of tutti it imports only core.
package queue
