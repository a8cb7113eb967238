package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// ConnConfig configures a Conn.
type ConnConfig struct {
	// URL names the external servers, comma-separated; empty with Server.
	URL string
	Security
	// Server is the in-process server; nil for an external one.
	Server InProcessServer
	// Streams are the streams that SetUp creates and that are probed; 0 replicas mean a number that suits the server.
	Streams []jetstream.StreamConfig
	// StartTimeout limits Dial and SetUp together.
	StartTimeout time.Duration
	Logger       *slog.Logger
	// OnRestart is called after each restart of Server.
	OnRestart func()
}

// Conn is a connection to JetStream, which is restored in the background when it is lost. It is safe for concurrent use.
type Conn struct {
	NC         *nats.Conn
	JS         jetstream.JetStream
	Log        *slog.Logger
	Durability *Durability

	cfg    ConnConfig
	state  *connectionState
	closed chan struct{}
	// moved has an element when the connection has moved since replicaKeeper began its last attempt.
	moved chan struct{}
	// denied is the last refusal of the server, which does not answer what it refuses.
	denied atomic.Pointer[denial]
	// failed is why the connection is not restored, nil while it is connected or the reason is unknown.
	failed atomic.Pointer[core.Error]
	// unfit is why the server to which the connection has moved should not be used, nil if it may.
	unfit atomic.Pointer[core.Error]
	// watching is the work of watchFailures, which stopWatching ends, and of replicaKeeper; nil without them.
	watching     sync.WaitGroup
	stopWatching func()
	// writes is locked for writing while no write may be in flight.
	writes sync.RWMutex
}

// Dial connects to a server, retrying until ctx ends.
func Dial(ctx context.Context, cfg ConnConfig) (*Conn, error) {
	c := &Conn{
		Log: cfg.Logger, Durability: newDurability(), cfg: cfg, state: newConnectionState(), closed: make(chan struct{}),
		moved: make(chan struct{}, 1),
	}
	secured, err := cfg.options()
	if err != nil {
		return nil, err
	}
	opts := append(c.options(), secured...)
	if cfg.Server != nil {
		opts = append(opts, nats.InProcessServer(cfg.Server))
	}
	if err = c.RetryStart(ctx, func(context.Context) (err error) {
		if c.NC, err = nats.Connect(cfg.URL, opts...); err != nil {
			return cfg.connectError(err)
		}
		if old := connectedTooOld(c.NC); old != nil {
			c.NC.Close()
			old.Message = "connecting to the queue: " + old.Message
			return old
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if cfg.Server == nil {
		changes := c.NC.StatusChanged(nats.RECONNECTING)
		c.stopWatching = func() { c.NC.RemoveStatusListener(changes) }
		c.watching.Go(func() { c.watchFailures(changes) })
	}
	if c.JS, err = jetstream.New(c.NC, jetstream.WithDefaultTimeout(CallTimeout)); err != nil {
		return nil, errors.Join(WrapError("connecting to the queue", err), c.Disconnect(ctx))
	}
	return c, nil
}

// SetUp creates the streams, or updates existing ones to the configuration, and returns them by name.
func (c *Conn) SetUp(ctx context.Context) (map[string]jetstream.Stream, error) {
	streams := make(map[string]jetstream.Stream)
	for _, cfg := range c.cfg.Streams {
		if err := c.RetryStart(ctx, func(ctx context.Context) (err error) {
			streams[cfg.Name], err = c.createStream(ctx, cfg)
			return err
		}); err != nil {
			return nil, err
		}
	}
	if c.cfg.Server == nil {
		keeper := replicaKeeper{c.NC, c.JS, c.Log, c.cfg.Streams, c.moved, c.closed}
		c.watching.Go(func() { keeper.run(context.WithoutCancel(ctx)) })
	}
	return streams, nil
}

// createStream creates a stream or updates it to cfg. Without cfg.Replicas it has defaultReplicas at least; an existing stream keeps its
// replicas if it has more, or the server refuses more.
func (c *Conn) createStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	doing := "setting up the stream " + cfg.Name
	before := 0
	existing, err := c.JS.Stream(ctx, cfg.Name)
	switch {
	case err == nil:
		before = existing.CachedInfo().Config.Replicas
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, WrapError(doing, err)
	}
	configured := cfg.Replicas
	if configured == 0 {
		cfg.Replicas = max(before, defaultReplicas(c.NC))
	}
	s, err := c.JS.CreateOrUpdateStream(ctx, cfg)
	if api, refused := errors.AsType[*jetstream.APIError](err); refused && configured == 0 && 0 < before && before < cfg.Replicas {
		c.Log.Warn("a stream has fewer replicas than it should", "stream", cfg.Name, "replicas", before, "want", cfg.Replicas, "err", api)
		cfg.Replicas = before
		s, err = c.JS.CreateOrUpdateStream(ctx, cfg)
	}
	if err != nil {
		return nil, WrapError(doing, err)
	}
	switch {
	case cfg.Replicas < before:
		c.Log.Warn("the replicas of a stream were reduced", "stream", cfg.Name, "replicas", cfg.Replicas, "before", before)
	case cfg.Replicas > before && before > 0:
		c.Log.Info("the replicas of a stream were increased", "stream", cfg.Name, "replicas", cfg.Replicas, "before", before)
	}
	return s, nil
}

// defaultReplicas returns how many replicas a stream has without configuration: on a cluster, enough that one server may stop.
func defaultReplicas(nc *nats.Conn) int {
	if nc.ConnectedClusterName() == "" {
		return 1
	}
	return clusterReplicas
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

const (
	// CallTimeout is the longest that one call waits for an answer of the server.
	CallTimeout = 5 * time.Second
	// readyTimeout is the longest that Ready waits.
	readyTimeout = 2 * time.Second
	// clusterReplicas is the default number of replicas on a cluster.
	clusterReplicas = 3
	// pingInterval and maxPings: a silent server counts as disconnected after ten seconds.
	pingInterval = 5 * time.Second
	maxPings     = 2
	// reconnectWait is the pause between two attempts to reconnect.
	reconnectWait = 250 * time.Millisecond
	// DefaultStartTimeout limits all attempts of the calls at start together.
	DefaultStartTimeout = time.Minute
	// FirstAttemptTimeout limits the first attempt of a call at start; each further attempt gets twice as long, up to
	// CallTimeout. A cluster leaves requests unanswered while it forms, and when several processes create the same
	// stream at once.
	FirstAttemptTimeout = time.Second
)

// RetryStart calls try until it succeeds, and returns the last error when that is not retryable or ctx has ended
// (Config.StartTimeout). The context of try limits one attempt.
func (c *Conn) RetryStart(ctx context.Context, try func(ctx context.Context) error) error {
	for length := FirstAttemptTimeout; ; length = min(2*length, CallTimeout) {
		attempt, end := context.WithTimeout(ctx, length)
		c.denied.Store(nil)
		err := try(attempt)
		end()
		if err == nil || !core.Retryable(err) {
			return err
		}
		if denied := c.denied.Load(); denied != nil {
			return denied.explain(err)
		}
		if ctx.Err() == nil {
			c.Log.Warn("the start waits for the queue", "err", err, "hint", core.HintOf(err))
		}
		if retry.Sleep(ctx, retry.Jitter(length/2)) == nil {
			continue
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &core.Error{
				Code: core.CodeOf(err), Hint: core.HintOf(err), Err: causeOf(err),
				Message: fmt.Sprintf("%s; gave up after %s", core.MessageOf(err), c.cfg.StartTimeout),
			}
		}
		return err
	}
}

func (cfg ConnConfig) connectError(err error) error {
	e := &core.Error{
		Code: core.CodeUnavailable, Message: "connecting to the queue: no server answers",
		Hint: "check queue.url and that nats-server runs there", RetryAfter: retryWhenDown, Err: err,
	}
	if message, hint := cfg.failure(err); message != "" {
		e.Message, e.Hint = "connecting to the queue: "+message, hint
	}
	if refused(err) {
		e.Code, e.RetryAfter = core.CodeUnauthenticated, 0
	}
	return e
}

// options: reconnecting never ends, and nothing is buffered while disconnected, because a message whose publish
// failed must not be sent later.
func (c *Conn) options() []nats.Option {
	return []nats.Option{
		nats.Name("tutti"),
		nats.Timeout(CallTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.state.broadcast()
			if err != nil {
				c.Log.Warn("queue disconnected", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.failed.Store(nil)
			c.state.broadcast()
			c.checkServer(nc)
			select {
			case c.moved <- struct{}{}:
			default:
			}
			c.Log.Info("queue reconnected")
		}),
		nats.ErrorHandler(func(nc *nats.Conn, _ *nats.Subscription, err error) {
			if c.Durability.probeDenied(err) || (refused(err) || !nc.IsConnected()) && c.noteFailure(err) {
				return
			}
			if errors.Is(err, nats.ErrPermissionViolation) {
				c.denied.Store(&denial{err, time.Now()})
			}
			c.Log.Warn("queue connection reported an error", "err", err)
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
}

// Disconnect flushes and closes the connection.
func (c *Conn) Disconnect(ctx context.Context) error {
	if c.NC.IsConnected() {
		flush, cancel := context.WithTimeout(ctx, CallTimeout)
		if err := c.NC.FlushWithContext(flush); err != nil {
			c.Log.Debug("queue not flushed before closing", "err", err)
		}
		cancel()
	}
	c.NC.Close()
	if c.stopWatching != nil {
		c.stopWatching()
		c.watching.Wait()
	}
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "closing the queue", ctx.Err())
	}
}
