package indexing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/server"
	"tutti/internal/core"
)

const (
	contentTypeEvents = "text/event-stream"
	headerLastEventID = "Last-Event-ID"
	// batchInterval is the minimum time between two batches of events of one stream.
	batchInterval = 250 * time.Millisecond
	// keepAliveInterval is the maximum idle time of a stream: proxies drop connections that are idle for a minute.
	keepAliveInterval = 15 * time.Second
	// reconnectDelay is the reconnection time that the stream sends to clients.
	reconnectDelay = 2 * time.Second
	// eventTimeout is the deadline of one write, of about eventChunk bytes at most: a client that reads nothing must not hold a
	// goroutine and its feed forever.
	eventTimeout = 30 * time.Second
	eventChunk   = 32 << 10
)

// Types of the events of GET /jobs/{id}/events.
const (
	// EventOrganization carries the newest state of one organization of the job: an element of organizations in the body
	// of GET /jobs/{id}.
	EventOrganization = "organization"
	// EventJob carries the newest state of the job: the body of GET /jobs/{id} without organizations.
	EventJob = "job"
	// EventEnd is the last event, with the last known state of the job: {"state": …}.
	EventEnd = "end"
)

// endBody is the data of EventEnd.
type endBody struct {
	State core.JobState `json:"state"`
}

// stream handles GET /jobs/{id}/events with server-sent events (CONTRACT section 1; WHATWG HTML, "Server-sent events"):
//
//	retry: 2000
//
//	id: 17
//	event: organization
//	data: {"organization":"PACA-CA","totals":{…},"state":"running"}
//
//	id: 18
//	event: job
//	data: {"id":"…","state":"running","totals":{…},"ratePerSecond":150,"etaSeconds":4,"organizationsTotal":1,…}
//
//	id: 23
//	event: end
//	data: {"state":"succeeded"}
//
// Data is one line of JSON. A stream begins with every organization known so far, the one that changed longest ago first, and one EventJob;
// then follow, at most every 250 ms, the organizations that changed and one EventJob, each in its newest state. Of a job with more than
// ShownOrganizations, only some organizations are sent: at most as many at a time, failed and running ones first, and each that was sent
// before it had ended until it has. EventJob counts all of them. A change between waiting
// and not waiting is sent within 15 s. A line ": keep-alive" is sent after 15 s without an event. After the EventJob of a final job, or
// when the job is removed, the stream ends with EventEnd. If it ends without EventEnd (the server stops, the queue does not answer, the
// client is too slow), the client should reconnect.
//
// Ids are whole numbers that never decrease in a stream; several events may have the same one. A client that reconnects with the last id
// that it received, as Last-Event-ID or as the query parameter lastEventId (the header wins), receives only later changes, always with an
// EventJob. It receives 204 when it has received the EventJob of a final job and nothing has changed since: an EventSource then stops. HEAD
// returns the header of the stream.
//
// Errors are returned before anything is written.
func (j jobs) stream(w http.ResponseWriter, r *http.Request) error {
	id, err := api.PathParam(r, "id", "id")
	if err != nil {
		return err
	}
	last, err := lastEventID(r)
	if err != nil {
		return err
	}
	if err := CheckJob(r, j.port, id); err != nil {
		return err
	}
	feed := newJobFeed()
	ctx, cancel := context.WithCancel(r.Context())
	watched := watch{done: make(chan struct{})}
	go watched.run(func() error { return j.events.Watch(ctx, id, feed.add) })
	defer func() {
		cancel()
		<-watched.done
	}()

	select {
	case <-feed.ready:
	case <-watched.done:
		if !feed.isReady() {
			return watched.earlyError(ctx)
		}
	case <-server.StoppingOf(ctx):
		// Empty, not an error: an EventSource stops after an error, and reconnects after the end of a stream.
		_ = openEvents(w, r, last).flush()
		return nil
	}
	from, ended := feed.resume(last)
	if ended {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	stream := openEvents(w, r, from)
	if r.Method != http.MethodHead {
		api.NoteError(r, j.follow(ctx, stream, feed, &watched))
	}
	return nil
}

// watch is a running call of JobEvents.Watch; err is set once done is closed.
type watch struct {
	done chan struct{}
	err  error
}

// run stores the error of call. It recovers panics, which would end the process in this goroutine.
func (w *watch) run(call func() error) {
	defer close(w.done)
	defer func() {
		if v := recover(); v != nil {
			w.err = api.PanicError(v)
		}
	}()
	w.err = call()
}

// earlyError returns the error of a watch that ended before the initial state was known; nil when the client has disconnected.
func (w *watch) earlyError(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case w.err != nil:
		return w.err
	default:
		return core.NewError(core.CodeNotFound, "job not found")
	}
}

// lastEventID returns the last event id that the client received, 0 for none.
func lastEventID(r *http.Request) (uint64, error) {
	q, err := api.QueryOf(r)
	if err != nil {
		return 0, err
	}
	given, err := q.Text("lastEventId")
	if err != nil {
		return 0, err
	}
	what := "query parameter lastEventId"
	if header := strings.Join(r.Header.Values(headerLastEventID), ","); header != "" {
		given, what = header, headerLastEventID
	}
	if given == "" {
		return 0, nil
	}
	last, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return 0, core.WrapError(core.CodeInvalid, what+" is not an id issued by this server", err)
	}
	return last, nil
}

// follow writes the current state and then changes, until the job is final or removed, the client is gone or the server
// stops. Its error is only logged: the client only sees that the stream ends.
func (j jobs) follow(ctx context.Context, s *eventStream, feed *jobFeed, watched *watch) error {
	stopping := server.StoppingOf(ctx)
	keepAlive, batch := time.NewTimer(keepAliveInterval), time.NewTimer(batchInterval)
	defer keepAlive.Stop()
	defer batch.Stop()
	b := j.nextBatch(feed)
	ended, err := s.writeBatch(b)
	told, paused := time.Now(), b.paused()
	var due <-chan time.Time // nil while nothing is pending
	for !ended && err == nil {
		changed := feed.changed
		if due != nil {
			changed = nil
		}
		select {
		case <-changed:
			batch.Reset(time.Until(told.Add(batchInterval)))
			due = batch.C
			continue
		case <-due:
			b = j.nextBatch(feed)
			ended, err = s.writeBatch(b)
			told, due, paused = time.Now(), nil, b.paused()
		case <-keepAlive.C:
			if b = j.nextBatch(feed); b.changed || b.paused() != paused {
				ended, err = s.writeBatch(b)
				paused = b.paused()
			} else {
				err = s.keepAlive()
			}
		case <-watched.done:
			return j.finishStream(ctx, s, feed, watched)
		case <-stopping:
			return nil
		}
		keepAlive.Reset(keepAliveInterval)
	}
	return streamError(ctx, err)
}

// nextBatch takes the pending changes of the feed, with the current reason why the job waits.
func (j jobs) nextBatch(feed *jobFeed) feedBatch {
	b := feed.take(j.now())
	if b.job != nil {
		j.notePause(b.job)
	}
	return b
}

// finishStream writes the last events of a stream whose watch has ended.
func (j jobs) finishStream(ctx context.Context, s *eventStream, feed *jobFeed, watched *watch) error {
	if watched.err != nil {
		return streamError(ctx, fmt.Errorf("watching a job: %w", watched.err))
	}
	b := j.nextBatch(feed)
	if b.changed {
		if ended, err := s.writeBatch(b); ended || err != nil {
			return streamError(ctx, err)
		}
	}
	s.end(feed.state())
	return streamError(ctx, s.flush())
}

// streamError returns err if it is worth logging: a disconnected client is not, one that stopped reading is.
func streamError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// eventStream writes events to one client.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
	// sent is the last id.
	sent uint64
	err  error
}

// openEvents starts a stream whose event ids continue after from.
func openEvents(w http.ResponseWriter, r *http.Request, from uint64) *eventStream {
	api.BeginStreaming(r)
	header := w.Header()
	header.Set("Content-Type", contentTypeEvents)
	header.Set("X-Accel-Buffering", "no") // nginx buffers responses otherwise
	w.WriteHeader(http.StatusOK)
	s := &eventStream{w: w, control: http.NewResponseController(w), sent: from}
	fmt.Fprintf(&s.buf, "retry: %d\n\n", reconnectDelay.Milliseconds())
	return s
}

// writeBatch writes a batch, and EventEnd after a final job. An event's id means that everything up to it was sent, and a client that
// reconnects with the last id of a final job gets 204; so rows newer than a final job are sent before it under an older id.
func (s *eventStream) writeBatch(b feedBatch) (ended bool, err error) {
	for _, row := range b.rows {
		id := row.revision
		if b.final() && id >= b.jobRevision {
			id = b.jobRevision - 1
		}
		s.event(EventOrganization, id, newOrganizationBody(row.run))
	}
	if b.job != nil {
		s.event(EventJob, b.revision, b.job)
	}
	if b.final() {
		s.end(b.job.State)
	}
	return b.final(), s.flush()
}

// end writes EventEnd.
func (s *eventStream) end(state core.JobState) { s.event(EventEnd, s.sent, endBody{State: state}) }

// event buffers an event, and flushes from eventChunk bytes on.
func (s *eventStream) event(name string, id uint64, data any) {
	if s.err != nil {
		return
	}
	line, err := json.Marshal(data)
	if err != nil {
		s.err = core.WrapError(core.CodeInternal, "writing an event as JSON", err)
		return
	}
	s.sent = max(s.sent, id)
	fmt.Fprintf(&s.buf, "id: %d\nevent: %s\ndata: %s\n\n", s.sent, name, line)
	if s.buf.Len() >= eventChunk {
		_ = s.flush()
	}
}

// keepAlive writes a comment, which keeps proxies from dropping the connection and detects a disconnected client.
func (s *eventStream) keepAlive() error {
	s.buf.WriteString(": keep-alive\n\n")
	return s.flush()
}

// flush sends the buffered events. After an error it sends nothing.
func (s *eventStream) flush() error {
	if s.err != nil {
		return s.err
	}
	// Writers of tests may have no deadlines. net/http clears the deadline after the response.
	_ = s.control.SetWriteDeadline(time.Now().Add(eventTimeout))
	if _, s.err = s.w.Write(s.buf.Bytes()); s.err == nil {
		s.err = s.control.Flush()
	}
	s.buf.Reset()
	if s.err != nil {
		s.err = fmt.Errorf("writing events: %w", s.err)
	}
	return s.err
}
