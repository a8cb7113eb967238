package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"tutti/internal/core"
)

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
	// maxRetryAfter bounds how long a server may make a watch wait before it looks again.
	maxRetryAfter = 30 * time.Second
)

// Event is one piece of news of a job. One of its members is set.
type Event struct {
	// Job is the job without its organizations.
	Job *Job
	// Organization is one organization of it, as it is now.
	Organization *Organization
	// Lost says why there is no news for now. The next Job or Organization ends it.
	Lost error
}

// stopped is an error of a watch's callback.
type stopped struct{ error }

// Unwrap returns the error of the callback.
func (s stopped) Unwrap() error { return s.error }

// WatchJob calls each for a job and its organizations as they are and for every change, in one goroutine, until the job
// has ended, and returns it as it is then. A stream of events that breaks is taken up where it broke; where the server has
// none, the job is looked at again and again. Errors: one of each, CodeNotFound when there is no such job, what the
// server refuses, CodeUnavailable when it did not answer at the start or not within Config.Patience later on.
func (c *Client) WatchJob(ctx context.Context, id string, each func(Event) error) (Job, error) {
	path, err := pathOf(pathJobs, id)
	if err != nil {
		return Job{}, err
	}
	w := &watch{client: c, id: id, path: path + "/events", each: each, streams: true, heard: time.Now()}
	job, err := w.run(ctx)
	if s, ok := errors.AsType[stopped](err); ok {
		err = s.error
	}
	return job, err
}

// watch is one WatchJob.
type watch struct {
	client *Client
	id     string
	path   string
	each   func(Event) error
	// streams is false once the server has shown that it has no stream of events.
	streams bool
	lastID  string
	// answered is true once the server said anything of the job; heard is when it last did.
	answered bool
	heard    time.Time
	// pause is the next pause after a failure, retry the least one that the server asked for.
	pause, retry time.Duration
}

func (w *watch) run(ctx context.Context) (Job, error) {
	for {
		ended, news, err := w.stream(ctx)
		if ended || news == 0 {
			// Where a proxy holds the stream back, or there is none, things go on by looking.
			var job Job
			if job, err = w.look(ctx); err == nil && job.State.Final() {
				return job, nil
			}
		}
		if err != nil {
			if fatal := w.judge(ctx, err); fatal != nil {
				return Job{}, fatal
			}
		}
		if err := w.wait(ctx, err); err != nil {
			return Job{}, err
		}
	}
}

// stream reads the stream of events until it ends. It reports whether the job has ended and how many pieces of news came.
func (w *watch) stream(ctx context.Context) (ended bool, news int, err error) {
	if !w.streams {
		return false, 0, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(w.client.cfg.Silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	resp, err := w.client.send(ctx, call{method: http.MethodGet, path: w.path, accept: typeEvents, lastEventID: w.lastID})
	if err != nil {
		if _, ok := errors.AsType[*AnswerError](err); ok && !core.Retryable(err) {
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
	events := newEventReader(loud{resp.Body, func() {
		w.heard = time.Now()
		quiet.Reset(w.client.cfg.Silence)
	}})
	events.lastID = w.lastID
	for {
		e, err := events.next()
		w.lastID, w.retry = events.lastID, events.retry
		if err != nil {
			return false, news, w.broken(ctx, err)
		}
		ended, known, err := w.tell(e)
		if known {
			news++
		}
		if err != nil || ended {
			return ended, news, err
		}
	}
}

// errSilent is the cause of a stream that was given up because it said nothing.
var errSilent = errors.New("the stream of events is silent")

// broken makes the error of a stream that ended before its job: none when the server ended it in good order.
func (w *watch) broken(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) && ctx.Err() == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return core.WrapError(core.CodeUnavailable, fmt.Sprintf("tutti at %s says nothing more", w.client.base), errSilent)
	}
	if core.CodeOf(err) == core.CodeTooLarge {
		w.streams = false
		return nil
	}
	return w.client.unanswered(ctx, err)
}

// loud calls heard for all that is read.
type loud struct {
	io.Reader
	heard func()
}

// Read reads, and calls heard when there was something.
func (l loud) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// tell returns an event to the callback. It reports whether it was the last one, and whether it is one that is known: what a
// newer server may send is passed over, since the look at the end is whole.
func (w *watch) tell(e serverEvent) (ended, known bool, err error) {
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

// look returns the job as it is to the callback.
func (w *watch) look(ctx context.Context) (Job, error) {
	job, err := w.client.Job(ctx, w.id)
	if err != nil {
		return Job{}, err
	}
	w.answered, w.heard = true, time.Now()
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
		return stopped{err}
	}
	return nil
}

// judge tells a failure that ends the watch, which it gives, from one that passes, which it tells the callback of.
func (w *watch) judge(ctx context.Context, err error) error {
	if _, ok := errors.AsType[stopped](err); ok {
		return err
	}
	if ctx.Err() != nil || !core.Retryable(err) || !w.answered {
		return err
	}
	if since := time.Since(w.heard); since > w.client.cfg.Patience {
		return fmt.Errorf("waiting for job %s for %s: %w", w.id, since.Round(time.Second), err)
	}
	return w.call(Event{Lost: err})
}

// wait pauses before the next try: the usual time where the job is looked at again and again, else longer and longer
// until a stream has served.
func (w *watch) wait(ctx context.Context, err error) error {
	d := w.client.cfg.Poll
	if w.streams || err != nil {
		w.pause = min(max(w.pause*2, firstPause), maxPause)
		// Clients that were cut off together do not come back together.
		d = w.pause/2 + rand.N(w.pause)
	}
	d = max(d, min(max(core.RetryAfterOf(err), w.retry), maxRetryAfter))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for job %s: %w", w.id, context.Cause(ctx))
	}
}
