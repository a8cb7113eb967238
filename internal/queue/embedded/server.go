package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
)

const (
	// maxMemory limits streams in memory; tutti stores its streams in files, so only the state of ephemeral consumers is
	// there.
	maxMemory = 64 << 20
	// maxPayload is the default of an external nats-server, so that both reject the same messages.
	maxPayload = 1 << 20
	// maxStore is the limit of the streams if none is configured. nats-server's own default is three quarters of the
	// free space when it starts, so that one started on a nearly full disk would reject messages after space was freed.
	maxStore = math.MaxInt64
	// readyPoll is the interval at which a starting server is polled.
	readyPoll = 50 * time.Millisecond
)

// Config configures the in-process server. The zero value of all but Dir is the default.
type Config struct {
	// Dir is the folder of its streams; it is created if missing and locked against other processes.
	Dir string
	// Listen is a host:port for TCP connections, port 0 for a free one; empty, the default, for none.
	Listen string
	// MaxStoreBytes limits the size of all streams in bytes; 0 for no limit but the disk's.
	MaxStoreBytes int64
	// Logger receives the server's warnings and errors; nil for none.
	Logger *slog.Logger
	// SyncLater leaves writes to the operating system: they may be lost if the machine fails before the caller has synced the files
	// in Dir, after Stop. For filling a new folder.
	SyncLater bool
}

func (c Config) validate() error {
	if c.Dir == "" {
		return core.NewError(core.CodeInvalid, "the embedded queue needs a folder")
	}
	if c.MaxStoreBytes < 0 {
		return core.NewError(core.CodeInvalid, "the size of the embedded queue's store must not be negative")
	}
	return nil
}

// options returns the server's options: streams synced to disk at every write, no signals taken, no monitoring.
func (c Config) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "tutti",
		DontListen: c.Listen == "",
		NoSigs:     true,
		NoLog:      c.Logger == nil,
		MaxPayload: maxPayload,

		JetStream:              true,
		StoreDir:               c.Dir,
		SyncAlways:             !c.SyncLater,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      cmp.Or(c.MaxStoreBytes, maxStore),
		DisableJetStreamBanner: true,
	}
	if c.Listen == "" {
		return opts, nil
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the address of the embedded queue is not host:port", err)
	}
	opts.Host = host
	opts.Port, err = strconv.Atoi(port)
	if err != nil {
		return nil, core.WrapError(core.CodeInvalid, "the port of the embedded queue is not a number", err)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return opts, nil
}

// Server runs a nats-server with JetStream inside this process. Restart replaces that server; the folder stays locked from
// Start to Stop.
type Server struct {
	lock *Lock
	// current is the running server, nil after a Restart that could not start the next one.
	current atomic.Pointer[instance]

	// mu is held while current is replaced or stopped; it guards cfg, stopping and damage.
	mu       sync.Mutex
	cfg      Config
	stopping bool
	damage   Damage

	once    sync.Once
	stopped chan struct{}
	stopErr error
}

// instance is one nats-server.
type instance struct {
	nats *server.Server
	// ended is closed when the goroutine that runs the server has returned.
	ended chan struct{}
}

// Start locks cfg.Dir and starts the server on it; it returns when the server accepts connections, which after a
// crash may take seconds of reading. CodeConflict when another process has locked the folder, CodeInternal when the
// server cannot start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if _, err := cfg.options(); err != nil {
		return nil, err
	}
	lock, err := LockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, lock: lock, stopped: make(chan struct{})}
	if err := s.run(ctx); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return s, nil
}

// run checks the stored messages, starts a nats-server and makes it the current one.
func (s *Server) run(ctx context.Context) error {
	opts, err := s.cfg.options()
	if err != nil {
		return err
	}
	if s.damage, err = repairStreams(s.cfg.Dir); err != nil {
		return err
	}
	if len(s.damage) > 0 && s.cfg.Logger != nil {
		s.cfg.Logger.Error("stored messages were damaged on the disk and cannot be read; the others remain", "messages", s.damage)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return core.WrapError(core.CodeInternal, "setting up the embedded queue", err)
	}
	log := newLogger(s.cfg.Logger)
	ns.SetLoggerV2(log, false, false, false)
	i := &instance{nats: ns, ended: make(chan struct{})}
	go func() {
		defer close(i.ended)
		ns.Start()
	}()
	if err := i.ready(ctx, log); err != nil {
		i.stop()
		return err
	}
	if s.cfg.Listen != "" {
		s.cfg.Listen = ns.Addr().String() // clients look for the next server where this one was
	}
	s.current.Store(i)
	return nil
}

// ready waits until the server accepts connections, ctx ends or the server fails.
func (i *instance) ready(ctx context.Context, log *logger) error {
	for !i.nats.ReadyForConnections(readyPoll) {
		select {
		case text := <-log.fatal:
			return core.WrapError(core.CodeInternal, "starting the embedded queue", errors.New(text))
		case <-ctx.Done():
			return core.WrapError(core.CodeUnavailable, "starting the embedded queue", ctx.Err())
		default:
		}
	}
	select {
	case text := <-log.fatal:
		return core.WrapError(core.CodeInternal, "starting the embedded queue", errors.New(text))
	default:
	}
	if !i.nats.JetStreamEnabled() {
		return core.NewError(core.CodeInternal, "the embedded queue started without its streams")
	}
	return nil
}

// stop closes every connection and flushes the streams.
func (i *instance) stop() {
	i.nats.Shutdown()
	<-i.ended
	i.nats.WaitForShutdown()
}

// InProcessConn returns a connection to the server inside the process.
func (s *Server) InProcessConn() (net.Conn, error) {
	i := s.current.Load()
	if i == nil {
		return nil, errNotRunning()
	}
	conn, err := i.nats.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded queue: %w", err)
	}
	return conn, nil
}

// URL returns the address for clients of other processes, empty when the server does not listen.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Listen == "" {
		return ""
	}
	return "nats://" + s.cfg.Listen
}

// Stop closes every connection, flushes the streams and releases the folder. It waits for that, or until ctx ends,
// then it returns CodeUnavailable; stopping continues. Every later call waits for the same end.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		go func() {
			defer close(s.stopped)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stopping = true
			if i := s.current.Swap(nil); i != nil {
				i.stop()
			}
			s.stopErr = s.lock.Unlock()
		}()
	})
	select {
	case <-s.stopped:
		return s.stopErr
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the embedded queue", ctx.Err())
	}
}
