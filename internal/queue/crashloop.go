package queue

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/subjects"
)

const crashLoopHint = "processing started many times and never finished: it may have crashed the process each time"

// admit reports whether a message may be handed out to the handler. A message that crashes its process each time becomes a
// dead letter: after half of maxDeliver deliveries, each process counts the message once before it hands it out, until the
// message ends (forgetHandOuts). The server's own count is not enough, because it includes deliveries that were never processed.
func (c *Consumer) admit(ctx context.Context, m *nats.Msg, own *message) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	half := c.maxDeliver / 2
	if own.deliveries <= half {
		return true, nil
	}
	own.handOuts = c.queue.bucket.handOuts
	if own.handOuts.Current(own.sequence) { // this process has counted it, and did not crash
		return true, nil
	}
	count, err := own.handOuts.Count(ctx, own.sequence, own.storedAt)
	if err != nil {
		return false, err
	}
	if count < c.maxDeliver-half {
		if err := own.handOuts.Set(ctx, own.sequence, own.storedAt, count+1); err != nil {
			return false, err
		}
		return true, nil
	}
	if _, err := c.queue.requests.GetMsg(ctx, own.sequence); natsconn.IsNotFound(err) { // replaced, or ended by another process
		own.forgetHandOuts(ctx)
		return false, nil
	} else if err != nil {
		return false, natsconn.WrapError("reading a request", err)
	}
	stored := &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: own.sequence, Data: m.Data}
	if err := c.queue.moveToDeadLetters(ctx, stored, core.ReasonCrashLoop, crashLoopHint, own.deliveries-1); err != nil {
		return false, err
	}
	own.forgetHandOuts(ctx)
	return false, nil
}

// moveToDeadLetters stores a dead letter of m and then removes m.
func (q *Queue) moveToDeadLetters(ctx context.Context, m *jetstream.RawStreamMsg, reason, hint string, deliveries int) error {
	r, err := decodeRequest(m.Subject, m.Data)
	letter := requestDeadLetter(r, reason, hint, r.Attempts+deliveries)
	letter.Version = r.ResultVersion(versionOf(r, m.Time))
	subject := subjects.OfDeadLetter(letter)
	if err != nil {
		letter = unreadableDeadLetter(m.Subject, m.Data, reason, hint)
		letter.Attempts = deliveries
		subject = subjects.OfUnreadable(letter, m.Subject)
	}
	if err == nil && r.Scope == core.ScopeRecords {
		err = q.deadLetterRecords(ctx, r, letter)
	} else {
		err = q.deadLetters.PutAt(ctx, subject, letter)
	}
	if err != nil {
		return err
	}
	if err := q.requests.DeleteMsg(ctx, m.Sequence); err != nil && !natsconn.IsNotFound(err) {
		if stillThere, getErr := q.requests.GetMsg(ctx, m.Sequence); getErr == nil && stillThere != nil {
			return natsconn.WrapError("removing a request", err)
		}
	}
	q.log.Log(ctx, moveLogLevel(reason), "request moved to the dead letters", "reason", reason,
		"repository", letter.Repository, "organization", letter.Organization, "record_id", letter.RecordID,
		"request_id", r.ID, "job_id", letter.JobID)
	return nil
}

// deadLetterRecords stores a copy of the dead letter for each record of r.
func (q *Queue) deadLetterRecords(ctx context.Context, r core.Request, letter core.DeadLetter) error {
	for _, k := range r.Records {
		one := r.ForRecord(k)
		letter.Organization, letter.RecordID, letter.Request = k.Organization, k.ID, &one
		if err := q.deadLetters.Put(ctx, letter); err != nil {
			return err
		}
	}
	return nil
}

// moveLogLevel returns the level for logging a move: an operator must see a crash loop, but not the requests of a repository that the
// operator has removed from the configuration.
func moveLogLevel(reason string) slog.Level {
	if reason == core.ReasonCrashLoop {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
