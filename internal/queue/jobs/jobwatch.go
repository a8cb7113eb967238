package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/natsread"
)

// rewatchPause is the pause before an interrupted watch is restarted.
const rewatchPause = 200 * time.Millisecond

// callerError is an error of the callback of a watch.
type callerError struct{ err error }

// Error implements error.
func (e *callerError) Error() string { return e.err.Error() }

// Watch calls each with the current state of a job and of each of its organizations, in the order of their last
// changes, then once with an empty JobChange, and then with every change; of changes in quick succession at least
// the last is delivered. It continues after lost connections until each returns an error, which is returned
// unchanged, ctx ends, or the job is removed, which returns nil. CodeNotFound when there is no such job.
func (j *Jobs) Watch(ctx context.Context, id string, each func(core.JobChange) error) error {
	if _, err := j.Get(ctx, id); err != nil {
		return err
	}
	w := jobWatch{jobs: j, id: id, each: each, alone: make(map[string]struct{})}
	for {
		err := w.follow(ctx)
		var own *callerError
		switch {
		case errors.As(err, &own):
			return own.err
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return natsconn.WrapError("watching a job", ctx.Err())
		}
		j.bucket.Conn.Log.Debug("restarting the watch of a job", "job_id", id, "err", err)
		if err := retry.Sleep(ctx, rewatchPause); err != nil {
			return natsconn.WrapError("watching a job", err)
		}
	}
}

// jobWatch is one watch of a job.
type jobWatch struct {
	jobs *Jobs
	id   string
	each func(core.JobChange) error
	// seen is the last revision that was delivered, caughtUp whether everything that existed at the start was.
	seen     uint64
	caughtUp bool
	// alone holds the organizations that are stored by themselves, whatever their group says of them.
	alone map[string]struct{}
}

// follow delivers changes after the last revision until an error, or until the job is removed, which is nil.
func (w *jobWatch) follow(ctx context.Context) error {
	cfg := jetstream.ConsumerConfig{
		FilterSubjects: []string{cells.Prefix + jobKey(w.id), cells.Prefix + organizationKey(w.id, "") + ">"},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: w.seen + 1,
	}
	reader, err := natsread.NewReader(ctx, w.jobs.bucket.Conn, w.jobs.bucket.Stream, cfg)
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	wait := time.Duration(0)
	for {
		messages, err := reader.Next(ctx, wait)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := w.deliver(m); err != nil {
				return err
			}
		}
		switch {
		case len(messages) > 0:
		case !w.caughtUp:
			w.caughtUp = true
			if err := w.each(core.JobChange{Revision: w.seen}); err != nil {
				return &callerError{err}
			}
		case wait > 0: // no change; a purge sends no message
			if _, err := w.jobs.Get(ctx, w.id); core.CodeOf(err) == core.CodeNotFound {
				return nil
			}
		}
		if w.caughtUp {
			wait = natsread.WatchWait
		}
	}
}

// deliver decodes one key's new value and calls each, for a group with every organization of it.
func (w *jobWatch) deliver(m natsread.Message) error {
	w.seen = m.Sequence
	if cells.IsDeleted(m.Header) {
		return nil
	}
	if strings.HasPrefix(m.Subject, cells.Prefix+keyJob) {
		job := new(core.Job)
		return w.call(m, json.Unmarshal(m.Data, job), core.JobChange{Job: job})
	}
	if groupOf(m.Subject) < 0 {
		run := new(core.OrganizationRun)
		err := json.Unmarshal(m.Data, run)
		w.alone[run.Organization] = struct{}{}
		return w.call(m, err, core.JobChange{Run: run})
	}
	var group storedGroup
	err := json.Unmarshal(m.Data, &group)
	for i := range group.Runs {
		run := &group.Runs[i]
		if _, alone := w.alone[run.Organization]; alone || run.Moved {
			continue
		}
		if err := w.call(m, nil, core.JobChange{Run: run}); err != nil {
			return err
		}
	}
	if err != nil {
		return w.call(m, err, core.JobChange{})
	}
	return nil
}

// call calls each with the change of a message, which was decoded with an error or nil.
func (w *jobWatch) call(m natsread.Message, decodeErr error, change core.JobChange) error {
	if decodeErr != nil {
		return &callerError{core.WrapError(core.CodeInternal, "decoding a job", decodeErr)}
	}
	change.Revision = m.Sequence
	if err := w.each(change); err != nil {
		return &callerError{err}
	}
	return nil
}
