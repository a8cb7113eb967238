package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxRetryAfter bounds the wait that a server requests before the next attempt.
	maxRetryAfter = 30 * time.Second
)

// Event is a change of a job. One of its members is set.
type Event struct {
	// Job is the job without its organizations.
	Job *Job
	// Organization is one organization of the job, with its current state.
	Organization *Organization
	// Lost is the error of a lost connection. The next Job or Organization means that it works again.
	Lost error
}

// callbackError is an error of the callback.
type callbackError struct{ error }

// Unwrap returns the error of the callback.
func (s callbackError) Unwrap() error { return s.error }

// watch is the state of one WatchJob call.
type watch struct {
	client *Client
	id     string
	path   string
	each   func(Event) error
	// streams is false once the server is known to have no stream of events.
	streams bool
	lastID  string
	// answered is true once the server returned the job; heard is the time of the last data.
	answered bool
	lastData time.Time
	// pause is the next pause after an error, retry the minimum that the server requested.
	pause, retry time.Duration
}

func (w *watch) run(ctx context.Context) (Job, error) {
	for {
		ended, news, err := w.stream(ctx)
		if ended || news == 0 {
			// Poll when a proxy buffers the stream, or there is none.
			var job Job
			if job, err = w.poll(ctx); err == nil && job.State.Final() {
				return job, nil
			}
		}
		if err != nil {
			if fatal := w.handleError(ctx, err); fatal != nil {
				return Job{}, fatal
			}
		}
		if err := w.wait(ctx, err); err != nil {
			return Job{}, err
		}
	}
}

// stream reads the stream of events until it ends. It reports whether the job has ended and the number of events.
func (w *watch) stream(ctx context.Context) (ended bool, news int, err error) {
	if !w.streams {
		return false, 0, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(w.client.cfg.IdleTimeout, func() { cancel(errStreamIdle) })
	defer quiet.Stop()
	resp, err := w.client.send(ctx, call{method: http.MethodGet, path: w.path, accept: typeEvents, lastEventID: w.lastID})
	if err != nil {
		if _, ok := errors.AsType[*ResponseError](err); ok && !core.Retryable(err) {
			w.streams = false
			return false, 0, nil
		}
		return false, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return true, 0, nil
	}
	if mediaType(resp) != typeEvents {
		w.streams = false
		return false, 0, nil
	}
	events := newEventReader(activityReader{resp.Body, func() {
		w.lastData = time.Now()
		quiet.Reset(w.client.cfg.IdleTimeout)
	}})
	events.lastID = w.lastID
	for {
		e, err := events.next()
		w.lastID, w.retry = events.lastID, events.retry
		if err != nil {
			return false, news, w.streamError(ctx, err)
		}
		ended, known, err := w.dispatch(e)
		if known {
			news++
		}
		if err != nil || ended {
			return ended, news, err
		}
	}
}

// errStreamIdle is the cause of a stream that was closed because it was idle.
var errStreamIdle = errors.New("the stream of events is idle")

// streamError returns the error of a stream that ended before its job, nil when the server closed it properly.
func (w *watch) streamError(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) && ctx.Err() == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errStreamIdle) {
		return core.WrapError(core.CodeUnavailable, fmt.Sprintf("tutti at %s no longer sends data", w.client.base), errStreamIdle)
	}
	if core.CodeOf(err) == core.CodeTooLarge {
		w.streams = false
		return nil
	}
	return w.client.connectionError(ctx, err)
}

// activityReader calls heard for all data read.
type activityReader struct {
	io.Reader
	onData func()
}

// Read reads, and calls heard when there was data.
func (l activityReader) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.onData()
	}
	return n, err
}

// dispatch passes an event to the callback. It reports whether it was the last one, and whether it is known: unknown events of newer
// servers are ignored, since the final poll is complete.
func (w *watch) dispatch(e serverEvent) (ended, known bool, err error) {
	var news Event
	switch e.name {
	case "end":
		return true, true, nil
	case "job":
		news.Job = new(Job)
		known = json.Unmarshal(e.data, news.Job) == nil
	case "organization":
		news.Organization = new(Organization)
		known = json.Unmarshal(e.data, news.Organization) == nil
	}
	if !known {
		return false, false, nil
	}
	w.answered, w.pause = true, 0
	return false, true, w.call(news)
}

// poll polls the job and passes it to the callback.
func (w *watch) poll(ctx context.Context) (Job, error) {
	job, err := w.client.Job(ctx, w.id)
	if err != nil {
		return Job{}, err
	}
	w.answered, w.lastData = true, time.Now()
	for i := range job.Organizations {
		if err := w.call(Event{Organization: &job.Organizations[i]}); err != nil {
			return Job{}, err
		}
	}
	shown := job
	shown.Organizations, shown.Raw = nil, nil
	return job, w.call(Event{Job: &shown})
}

func (w *watch) call(e Event) error {
	if err := w.each(e); err != nil {
		return callbackError{err}
	}
	return nil
}

// handleError returns a permanent error; it passes a temporary one to the callback.
func (w *watch) handleError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[callbackError](err); ok {
		return err
	}
	if ctx.Err() != nil || !core.Retryable(err) || !w.answered {
		return err
	}
	if since := time.Since(w.lastData); since > w.client.cfg.MaxOutage {
		return fmt.Errorf("waiting for job %s for %s: %w", w.id, since.Round(time.Second), err)
	}
	return w.call(Event{Lost: err})
}

// wait pauses before the next attempt: Config.PollInterval when polling, otherwise a backoff that grows until a stream works.
func (w *watch) wait(ctx context.Context, err error) error {
	d := w.client.cfg.PollInterval
	if w.streams || err != nil {
		w.pause = min(max(w.pause*2, firstPause), maxPause)
		d = retry.Jitter(w.pause)
	}
	d = max(d, min(max(core.RetryAfterOf(err), w.retry), maxRetryAfter))
	if retry.Sleep(ctx, d) != nil {
		return fmt.Errorf("waiting for job %s: %w", w.id, context.Cause(ctx))
	}
	return nil
}
