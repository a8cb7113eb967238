// Package natsconn is the connection of package queue to NATS: it reconnects, sets up streams, probes whether they can store, writes to them,
// and copies all of them; package natsread reads their messages. It knows no Requests. Of tutti it imports only core, retry and tlsconfig.
package natsconn
