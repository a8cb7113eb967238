// Package natsconn is the connection of package queue to NATS: it reconnects, sets up streams, probes whether they can
// store, and writes to and reads from them. It knows no Requests. Of tutti it imports only core and retry.
package natsconn
