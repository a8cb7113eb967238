package core

import (
	"context"
	"time"
)

// Message is a Request that a durable consumer delivered and that is not yet acknowledged.
type Message interface {
	// Request returns the decoded Request.
	Request() Request
	// Version returns the queue's timestamp of the message.
	Version() Version
	// Deliveries returns how often this message was delivered, 1 for the first time.
	Deliveries() int
	// Ack acknowledges the message and waits for the server's confirmation.
	Ack(ctx context.Context) error
	// Nak requeues the message for redelivery after delay.
	Nak(delay time.Duration) error
	// InProgress resets the server's ack wait for the message.
	InProgress() error
}

// Class distinguishes the durable consumers of a repository.
type Class string

// Classes of durable consumers, one each per repository, so that a long run never uses up the budget of single records.
const (
	ClassRecords Class = "records"
	// ClassBatches delivers the Requests for several records.
	ClassBatches Class = "batches"
	ClassPages   Class = "pages"
	ClassRuns    Class = "runs"
	// ClassRetries delivers the retries of dead letters of all repositories: it has one consumer.
	ClassRetries Class = "retries"
)
