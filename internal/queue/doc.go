// Package queue owns the streams of tutti: Requests in REQUESTS, dead letters in DEAD_LETTERS, the signatures of
// notifications in SEEN_SIGNATURES, and jobs in a key-value bucket (DESIGN, Data). Only it and its
// sub-packages use nats: natsconn is the connection, natsread reads through it, cells the key-value bucket, jobs the jobs in it, deadletter the dead letters, subjects and
// paging the names of subjects and the cursors of lists; embedded, which it must not import, runs the server.
package queue
