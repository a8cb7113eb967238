package queue

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/queue/cells"
	"tutti/internal/queue/deadletter"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
	"tutti/internal/queue/subjects"
)

// Names of the streams, for tests that look at the server itself.
const (
	StreamRequests    = streamRequests
	StreamDeadLetters = deadletter.StreamName
	StreamJobs        = cells.StreamName
	StreamSeen        = streamSeen
)

// RequestSubject returns the subject of a Request.
var RequestSubject = subjects.OfRequest

// Conn returns the connection.
func (q *Queue) Conn() *nats.Conn { return q.conn.NC }

// HoldGathered makes single Requests wait as if a publish were in progress, until release is called.
func HoldGathered(q *Queue) (release func()) {
	q.gather.mu.Lock()
	defer q.gather.mu.Unlock()
	q.gather.inFlight = maxUngathered
	return func() {
		for range maxUngathered {
			q.gather.publishDone(q.publisher)
		}
	}
}

// Gathered returns how many Requests wait for others.
func Gathered(q *Queue) int {
	q.gather.mu.Lock()
	defer q.gather.mu.Unlock()
	return len(q.gather.waiting)
}

// MaxGathered is how many may wait.
const MaxGathered = maxGathered

// Restarts counts the restarts of the server in this process.
func (q *Queue) Restarts() prometheus.Counter { return q.metrics.restarts }

// Probe probes the streams now and returns why they cannot store.
func (q *Queue) Probe(ctx context.Context) error { return q.conn.Probe(ctx) }

// RequestProbe requests a probe of the kind that is followed by others until the streams can store.
func (q *Queue) RequestProbe() { q.conn.Durability.RequestProbe() }

// Write runs one write.
func (q *Queue) Write(ctx context.Context, write func(context.Context) error) error {
	return q.conn.Write(ctx, write)
}

// Settle records the outcome of a probe.
func (q *Queue) Settle(err error) { q.conn.Durability.RecordProbe(err) }

// ProbeError is the error of a probe that failed with err.
var ProbeError = natsconn.ProbeFailure

// Streams are the names of all streams.
func Streams() []string {
	return []string{streamRequests, deadletter.StreamName, streamSeen, cells.StreamName}
}

// Ask opens a pull and takes nothing of what it brings.
func (c *Consumer) Ask(ctx context.Context, messages int) error {
	c.fetchLock <- struct{}{}
	defer func() { <-c.fetchLock }()
	return c.puller.Open(ctx, natsread.Budget{Messages: messages}, time.Now().Add(20*time.Second))
}

// IdleFor makes the last Fetch older.
func (c *Consumer) IdleFor(d time.Duration) { c.puller.IdleSince = time.Now().Add(-d) }

// Arrived returns how many messages of the server no Fetch has taken, its own words included.
func (c *Consumer) Arrived() int { return len(c.puller.Arrived) }

// NoteHandOut notes the message at sequence, stored at a time, as handed out a number of times.
func (q *Queue) NoteHandOut(ctx context.Context, sequence uint64, storedAt time.Time, times int) error {
	return q.bucket.handOuts.Set(ctx, sequence, storedAt, times)
}

// Notes returns how many messages are noted as handed out.
func (q *Queue) Notes(ctx context.Context) (int, error) {
	stream, err := q.conn.JS.Stream(ctx, cells.StreamName)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$KV.tutti_jobs.begun.>"))
	if err != nil {
		return 0, err
	}
	return len(info.State.Subjects), nil
}

// PublishUndelivered searches twice for Requests that no consumer will deliver and publishes them again.
func (q *Queue) PublishUndelivered(ctx context.Context) error {
	before, err := q.undelivered(ctx)
	if err != nil {
		return err
	}
	found, err := q.undelivered(ctx)
	if err != nil {
		return err
	}
	return q.publishUndelivered(ctx, found, before)
}
