package core

import (
	"context"
	"time"
)

// Message is a Request in hand: delivered by a durable consumer and not yet acknowledged.
type Message interface {
	// Request returns the decoded Request.
	Request() Request
	// Version returns the queue's timestamp of the message.
	Version() Version
	// Deliveries counts how often this message was delivered, 1 for the first time.
	Deliveries() int
	// Ack ends the message for good. It waits for the server's word.
	Ack(ctx context.Context) error
	// Nak returns the message back, to be delivered again after delay.
	Nak(delay time.Duration) error
	// InProgress tells the server that the message is still worked on, and restarts its ack wait.
	InProgress() error
}

// Class tells the durable consumers of a repository apart.
type Class string

// Classes of durable consumer, one each per repository, so that a long run never takes the records' budget.
const (
	ClassRecords Class = "records"
	// ClassBatches delivers the Requests for several records at once.
	ClassBatches Class = "batches"
	ClassPages   Class = "pages"
	ClassRuns    Class = "runs"
)
