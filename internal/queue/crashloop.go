package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	// keyHandOuts is the prefix of the keys, by message sequence, that count how often a message was handed out without
	// ending.
	keyHandOuts = "begun."
	// handOutsTTL is longer than a supervisor waits before it restarts a process that keeps crashing.
	handOutsTTL   = 24 * time.Hour
	crashLoopHint = "processing started many times and never finished: it may have crashed the process each time"
)

func handOutsSubject(sequence uint64) string {
	return fmt.Sprintf("%s%s%d", jobsPrefix, keyHandOuts, sequence)
}

// admit reports whether a message may be handed out. A message that crashes its process each time becomes a dead
// letter: after half of its deliveries every hand-out is counted, once per process, until the message ends
// (forgetHandOuts). The server's own count is not enough, because it includes deliveries that were never processed.
func (c *Consumer) admit(ctx context.Context, m *nats.Msg, own *message) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	half := c.maxDeliver / 2
	if own.deliveries <= half {
		return true, nil
	}
	own.jobs = c.queue.jobs
	if _, noted := own.jobs.handedOut.Load(own.sequence); noted { // and did not crash this process
		return true, nil
	}
	begun, err := own.jobs.handOuts(ctx, own.sequence, own.storedAt)
	if err != nil {
		return false, err
	}
	if begun < c.maxDeliver-half {
		if err := own.jobs.noteHandOut(ctx, own.sequence, own.storedAt, begun+1); err != nil {
			return false, err
		}
		own.jobs.handedOut.Store(own.sequence, nil)
		return true, nil
	}
	if _, err := c.queue.requests.GetMsg(ctx, own.sequence); isNotFound(err) { // replaced, or ended by another process
		own.forgetHandOuts(ctx)
		return false, nil
	} else if err != nil {
		return false, wrapError("reading a request", err)
	}
	stored := &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: own.sequence, Data: m.Data}
	if err := c.queue.moveToDeadLetters(ctx, stored, core.ReasonCrashLoop, crashLoopHint, own.deliveries-1); err != nil {
		return false, err
	}
	own.forgetHandOuts(ctx)
	return false, nil
}

// handOuts returns how often a message was handed out. A count of another message with the same sequence is of a
// stream that was deleted.
func (j *Jobs) handOuts(ctx context.Context, sequence uint64, storedAt time.Time) (int, error) {
	m, err := j.stream.GetLastMsgForSubject(ctx, handOutsSubject(sequence))
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, wrapError("reading how often a request was handed out", err)
	}
	var at int64
	var times int
	if _, err := fmt.Sscan(string(m.Data), &at, &times); err != nil || at != storedAt.UnixNano() {
		return 0, nil //nolint:nilerr // not a count of this message
	}
	return times, nil
}

func (j *Jobs) noteHandOut(ctx context.Context, sequence uint64, storedAt time.Time, times int) error {
	note := fmt.Appendf(nil, "%d %d", storedAt.UnixNano(), times)
	return j.queue.publish(ctx, handOutsSubject(sequence), note, jetstream.WithMsgTTL(handOutsTTL))
}

// forgetHandOuts removes the count of a message that has ended, or waits without being processed. A count that is not
// removed expires after handOutsTTL.
func (m *message) forgetHandOuts(ctx context.Context) {
	if m.jobs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := m.jobs.purge(ctx, handOutsSubject(m.sequence)); err != nil {
		m.jobs.queue.log.Debug("hand-out count not removed", "request_id", m.request.ID, "err", err)
		return
	}
	m.jobs.handedOut.Delete(m.sequence)
}

// moveToDeadLetters stores a dead letter of m and then removes m.
func (q *Queue) moveToDeadLetters(ctx context.Context, m *jetstream.RawStreamMsg, reason, hint string, deliveries int) error {
	r, err := decodeRequest(m.Subject, m.Data)
	letter := requestDeadLetter(r, reason, hint, r.Attempts+deliveries)
	subject := deadLetterSubject(letter)
	if err != nil {
		letter = unreadableDeadLetter(m.Subject, m.Data, reason, hint)
		letter.Attempts = deliveries
		subject = unreadableDeadLetterSubject(letter, m.Subject)
	}
	if err == nil && r.Scope == core.ScopeRecords {
		err = q.deadLetterRecords(ctx, r, letter)
	} else {
		err = q.deadLetters.put(ctx, subject, letter)
	}
	if err != nil {
		return err
	}
	if err := q.requests.DeleteMsg(ctx, m.Sequence); err != nil && !isNotFound(err) {
		if stillThere, getErr := q.requests.GetMsg(ctx, m.Sequence); getErr == nil && stillThere != nil {
			return wrapError("removing a request", err)
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

// moveLogLevel: an operator must see a crash loop, but has removed a repository on purpose.
func moveLogLevel(reason string) slog.Level {
	if reason == core.ReasonCrashLoop {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
