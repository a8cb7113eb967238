package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

const (
	defaultReplicas   = 1
	defaultMaxPending = 200_000
	defaultMaxBodies  = 10_000

	// callTimeout is the longest that one call waits for an answer of the server.
	callTimeout = 5 * time.Second
	// readyTimeout is the longest that Ready waits.
	readyTimeout = 2 * time.Second
	// pingInterval and maxPings: a silent server counts as disconnected after ten seconds.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// reconnectWait is the pause between two attempts to reconnect.
	reconnectWait = 250 * time.Millisecond
)

// Config configures a Queue. The zero value is the default.
type Config struct {
	// URL names the external servers, comma-separated; only Connect uses it.
	URL string
	// CredentialsFile is a .creds file of an external server; empty for none.
	CredentialsFile string
	// Replicas is the number of copies of each stream, 1 to 5; 0 for 1.
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
	if c.Replicas == 0 {
		c.Replicas = defaultReplicas
	}
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxPending
	}
	if c.MaxDeadLetterBodies == 0 {
		c.MaxDeadLetterBodies = defaultMaxBodies
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = defaultStartTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if c.Replicas < 1 || c.Replicas > 5 {
		return core.NewError(core.CodeInvalid, fmt.Sprintf("queue.replicas is %d, it must be between 1 and 5", c.Replicas))
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

// Queue is a connection to the streams of tutti. It is safe for concurrent use.
type Queue struct {
	cfg        Config
	log        *slog.Logger
	metrics    *Metrics
	nc         *nats.Conn
	js         jetstream.JetStream
	connection *connectionState
	// server is the in-process server, nil for an external one.
	server      InProcessServer
	durability  *durability
	closed      chan struct{}
	requests    jetstream.Stream
	seen        jetstream.Stream
	deadLetters *DeadLetters
	jobs        *Jobs
	labels      *labels
	batches     batchLimiter
	gather      gatherer

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
	var opts []nats.Option
	if cfg.CredentialsFile != "" {
		opts = append(opts, nats.UserCredentials(cfg.CredentialsFile))
	}
	return open(ctx, cfg, nil, cfg.URL, opts)
}

// InProcessServer is a nats-server in this process, such as embedded.Server.
type InProcessServer interface {
	// InProcessConn returns a new connection to the server.
	InProcessConn() (net.Conn, error)
	// StorageError returns why the server cannot store until it is restarted, nil if it can as far as it knows.
	StorageError() error
	// Restart replaces the server by a new one with the same streams. After an error the server is unchanged or stopped.
	Restart(ctx context.Context) error
}

// ConnectInProcess is Connect for an in-process server. The server must outlive the Queue.
func ConnectInProcess(ctx context.Context, server InProcessServer, cfg Config) (*Queue, error) {
	return open(ctx, cfg, server, "", []nats.Option{nats.InProcessServer(server)})
}

func open(ctx context.Context, cfg Config, server InProcessServer, url string, opts []nats.Option) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	q := &Queue{
		cfg: cfg, log: cfg.Logger, metrics: cfg.Metrics, connection: newConnectionState(), server: server, durability: newDurability(),
		closed: make(chan struct{}),
		labels: newLabels(), consumers: make(map[*Consumer]struct{}),
	}
	opts = append(opts, q.options()...)
	starting, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	err := q.retryStart(starting, func(context.Context) (err error) {
		q.nc, err = nats.Connect(url, opts...)
		return connectError(err)
	})
	if err != nil {
		return nil, err
	}
	if q.js, err = jetstream.New(q.nc, jetstream.WithDefaultTimeout(callTimeout)); err != nil {
		return nil, errors.Join(wrapError("connecting to the queue", err), q.disconnect(ctx))
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	if err = q.setUpStreams(starting); err == nil {
		err = q.start(ctx, background)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close(context.WithoutCancel(ctx)))
	}
	return q, nil
}

// start loads the index of dead letters and starts the background goroutines, which run until background ends.
func (q *Queue) start(ctx, background context.Context) error {
	q.work.Go(func() { q.runProbes(background) })
	if err := q.Ready(ctx); err != nil {
		q.log.Warn("queue connected, but it cannot store messages yet", "err", err)
	}
	q.work.Go(func() { q.deadLetters.watch(background) })
	if err := q.deadLetters.awaitLoaded(ctx); err != nil {
		return err
	}
	q.work.Go(func() { q.refreshLag(background) })
	return nil
}

func connectError(err error) error {
	if err == nil {
		return nil
	}
	e := &core.Error{
		Code: core.CodeUnavailable, Message: "connecting to the queue: no server answers",
		Hint: "check queue.url and that nats-server runs there", RetryAfter: retryWhenDown, Err: err,
	}
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
		e.Code, e.RetryAfter = core.CodeUnauthenticated, 0
		e.Message = "connecting to the queue: the server does not accept the credentials"
		e.Hint = "check queue.credentialsFile"
	}
	return e
}

// options: reconnecting never ends, and nothing is buffered while disconnected, because a message whose publish
// failed must not be sent later.
func (q *Queue) options() []nats.Option {
	return []nats.Option{
		nats.Name("tutti"),
		nats.Timeout(callTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			q.connection.broadcast()
			if err != nil {
				q.log.Warn("queue disconnected", "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			q.connection.broadcast()
			q.log.Info("queue reconnected")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !q.durability.probeDenied(err) {
				q.log.Warn("queue connection reported an error", "err", err)
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(q.closed) }),
	}
}

// Close requeues the messages that were delivered and not fetched, ends the background goroutines and disconnects. It
// waits for that, or until ctx ends, then it returns CodeUnavailable. Messages in flight must have ended before.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	consumers := make([]*Consumer, 0, len(q.consumers))
	for c := range q.consumers {
		consumers = append(consumers, c)
	}
	q.mu.Unlock()
	for _, c := range consumers {
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
	return errors.Join(err, q.disconnect(ctx))
}

// disconnect flushes and closes the connection.
func (q *Queue) disconnect(ctx context.Context) error {
	if q.nc.IsConnected() {
		flush, cancel := context.WithTimeout(ctx, callTimeout)
		if err := q.nc.FlushWithContext(flush); err != nil {
			q.log.Debug("queue not flushed before closing", "err", err)
		}
		cancel()
	}
	q.nc.Close()
	select {
	case <-q.closed:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "closing the queue", ctx.Err())
	}
}

// DeadLetters returns the dead letters of the queue.
func (q *Queue) DeadLetters() *DeadLetters { return q.deadLetters }

// Jobs returns the jobs of the queue.
func (q *Queue) Jobs() *Jobs { return q.jobs }
