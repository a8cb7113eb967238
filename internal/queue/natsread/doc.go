// Package natsread reads messages of streams through the connection of package natsconn: a Puller those of a durable consumer, a Reader those of
// the stream in their order. It knows no Requests. Of tutti it imports only core, retry and natsconn, which must not import it.
//
// Its tests are in internal/queue.
package natsread
