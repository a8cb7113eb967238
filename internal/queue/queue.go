package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/deadletter"
	"tutti/internal/queue/jobs"
	"tutti/internal/queue/natsconn"
	"tutti/internal/queue/together"
)

const (
	defaultMaxPending = 200_000
	defaultMaxBodies  = 10_000
)

// Security says how connections to external servers are secured, and who connects.
type Security = natsconn.Security

// Config configures a Queue. The zero value is the default.
type Config struct {
	// URL names the external servers, comma-separated; only Connect uses it.
	URL string
	// MonitoringURL lists where Monitor reads what the servers report, comma-separated; only Monitor uses it.
	MonitoringURL string
	// Security is for external servers.
	Security Security
	// Replicas is the number of copies of each stream, 1 to 5, which existing streams get too; 0 for 3 on a cluster and 1 otherwise,
	// or as many as a stream has if they are more.
	Replicas int
	// MaxPending is the number of pending Requests above which Publish returns CodeOverloaded; 0 for 200,000.
	MaxPending int
	// MaxDeadLetterBodies is the number of dead letters of one repository's records that are stored with a document; 0
	// for 10,000.
	MaxDeadLetterBodies int
	// StartTimeout is how long Connect tries to connect and to set up the streams; 0 for 1 minute.
	StartTimeout time.Duration
	// Logger receives log lines; nil discards them.
	Logger *slog.Logger
	// Metrics receives the counts; nil for none.
	Metrics *Metrics
}

func (c Config) withDefaults() Config {
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxPending
	}
	if c.MaxDeadLetterBodies == 0 {
		c.MaxDeadLetterBodies = defaultMaxBodies
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = natsconn.DefaultStartTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if c.Replicas < 0 || c.Replicas > 5 {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("queue.replicas is %d, it must be between 0 and 5", c.Replicas))
	}
	if c.MaxPending < 1 {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("queue.maxPending is %d, it must be positive", c.MaxPending))
	}
	if c.StartTimeout < 0 {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("server.startTimeout is %s, it must be positive", c.StartTimeout))
	}
	if c.MaxDeadLetterBodies < 1 {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("deadLetters.maxBodies is %d, it must be positive", c.MaxDeadLetterBodies))
	}
	return nil
}

// bucket is what the key-value bucket holds.
type bucket struct {
	jobs      *jobs.Jobs
	cells     *cells.Cells
	pageNotes *cells.PageNotes
	handOuts  *cells.HandOuts
}

// Queue is a connection to the streams of tutti. It is safe for concurrent use.
type Queue struct {
	*publisher

	cfg         Config
	signatures  *Signatures
	deadLetters *deadletter.Store
	bucket      bucket
	labels      *labels

	// stop ends the background goroutines, which work counts.
	stop context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	consumers map[*Consumer]struct{}
}

// Connect connects to the external servers of cfg.URL and sets up the streams, retrying until cfg.StartTimeout. A
// connection that is lost later is restored in the background without limit; until then calls fail. CodeUnavailable
// when no server answers in time, CodeUnauthenticated when a server does not accept the credentials.
func Connect(ctx context.Context, cfg Config) (*Queue, error) {
	if cfg.URL == "" {
		return nil, core.NewError(core.CodeInvalid, "queue.url is empty")
	}
	return open(ctx, cfg, nil)
}

// ConnectInProcess is Connect for an in-process server. The server must outlive the Queue.
func ConnectInProcess(ctx context.Context, server natsconn.InProcessServer, cfg Config) (*Queue, error) {
	cfg.URL, cfg.Security = "", Security{}
	return open(ctx, cfg, server)
}

func open(ctx context.Context, cfg Config, server natsconn.InProcessServer) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	conn, err := natsconn.Dial(starting, natsconn.ConnConfig{
		URL: cfg.URL, Security: cfg.Security, Server: server, Streams: cfg.streamConfigs(),
		StartTimeout: cfg.StartTimeout, Logger: cfg.Logger, OnRestart: cfg.Metrics.countRestart,
	})
	if err != nil {
		return nil, err
	}
	q := &Queue{
		publisher: &publisher{conn: conn, log: cfg.Logger, metrics: cfg.Metrics, maxPending: cfg.MaxPending},
		cfg:       cfg, labels: newLabels(), consumers: make(map[*Consumer]struct{}),
	}
	q.publisher.openConsumers = q.openConsumers
	q.gather.work, q.together = &q.work, together.New(conn, &q.work, func(ctx context.Context, subject string) (uint64, error) {
		return together.LastSequence(ctx, q.requests, subject)
	})
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	if err = q.setUp(starting); err == nil {
		err = q.start(ctx, background)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close(context.WithoutCancel(ctx)))
	}
	return q, nil
}

// setUp creates the streams and opens the bucket.
func (q *Queue) setUp(ctx context.Context) error {
	if err := deadletter.Renew(ctx, q.conn, q.cfg.Replicas); err != nil {
		return err
	}
	streams, err := q.conn.SetUp(ctx)
	if err != nil {
		return err
	}
	q.requests, q.signatures = streams[streamRequests], &Signatures{q.conn, streams[streamSeen]}
	q.deadLetters = deadletter.New(q.conn, streams[deadletter.StreamName], deadletter.Config{
		MaxDocuments: q.cfg.MaxDeadLetterBodies, Metrics: q.metrics.deadLetterMetrics(), Label: q.labels.labelFor,
	})
	keys, err := cells.Open(ctx, q.conn, streams[cells.StreamName])
	q.bucket = bucket{jobs.New(keys, q.JobIDs), keys.Cells(), keys.PageNotes(), keys.HandOuts()}
	return err
}

// start loads the index of dead letters and starts the background goroutines, which run until background ends.
func (q *Queue) start(ctx, background context.Context) error {
	q.work.Go(func() { q.conn.RunProbes(background) })
	if err := q.Ready(ctx); err != nil {
		q.log.Warn("queue connected, but it cannot store messages yet", "err", err)
	}
	q.work.Go(func() { q.deadLetters.Watch(background) })
	if err := q.deadLetters.AwaitLoaded(ctx); err != nil {
		return err
	}
	q.work.Go(func() { q.refreshLag(background) })
	q.work.Go(func() { q.watchUndelivered(background) })
	return nil
}

// RetryStart calls try until it succeeds, and returns the last error when that is not retryable or after Config.StartTimeout. The context
// of try limits one attempt.
func (q *Queue) RetryStart(ctx context.Context, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.StartTimeout)
	defer cancel()
	return q.conn.RetryStart(ctx, try)
}

// Close requeues the messages that were delivered and not fetched, ends the background goroutines and disconnects. It
// waits for that, or until ctx ends, then it returns CodeUnavailable. Messages in flight must have ended before.
func (q *Queue) Close(ctx context.Context) error {
	for _, c := range q.openConsumers() {
		c.Close()
	}
	q.stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.work.Wait()
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = core.WrapError(core.CodeUnavailable, "closing the queue", ctx.Err())
	}
	return errors.Join(err, q.conn.Disconnect(ctx))
}

// DeadLetters returns the dead letters of the queue.
func (q *Queue) DeadLetters() *deadletter.Store { return q.deadLetters }

// Jobs returns the jobs of the queue.
func (q *Queue) Jobs() *jobs.Jobs { return q.bucket.jobs }

// Cells returns the compare-and-swap cells of the queue.
func (q *Queue) Cells() *cells.Cells { return q.bucket.cells }

// Groups returns the organizations of jobs that have many.
func (q *Queue) Groups() *jobs.Groups { return q.bucket.jobs.Groups() }

// Lists returns the lists of ids that jobs index.
func (q *Queue) Lists() *jobs.Lists { return q.bucket.jobs.Lists() }

// PageNotes returns the notes of pages of lists.
func (q *Queue) PageNotes() *cells.PageNotes { return q.bucket.pageNotes }

// Signatures returns the times at which signed notifications were first seen.
func (q *Queue) Signatures() *Signatures { return q.signatures }

// Ready reports whether the queue is connected and every stream stored a probe within the last seconds; CodeUnavailable
// otherwise. A stream that has as many messages as it may is ready.
func (q *Queue) Ready(ctx context.Context) error { return q.conn.Ready(ctx) }

// Denied returns what an external server has refused within the last minutes for a missing right, with a hint; nil for nothing. The streams
// may be writable nevertheless.
func (q *Queue) Denied() error { return q.conn.Denied() }

// Unfit returns why the external server to which the connection has moved should not be used, such as its version; nil if it may.
func (q *Queue) Unfit() error { return q.conn.Unfit() }

func (q *Queue) openConsumers() []*Consumer {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.consumers))
}
