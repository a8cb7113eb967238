package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"tutti/internal/core"
)

const (
	// maxMemory bounds what streams in memory may take; tutti keeps its streams in files, so only the state of
	// short-lived consumers lives there.
	maxMemory = 64 << 20
	// maxPayload is the default of an external nats-server, so that both refuse the same messages.
	maxPayload = 1 << 20
	// readyPoll is how long one look at the starting server waits.
	readyPoll = 50 * time.Millisecond
)

// Config says how the server in this process runs. The zero value of all but Dir is the default.
type Config struct {
	// Dir is the folder of its streams; it is made if missing and locked against other processes.
	Dir string
	// Listen is a host:port to take TCP connections on, port 0 for a free one; empty, the default, for none.
	Listen string
	// MaxStoreBytes bounds the size of all streams in bytes; 0 for three quarters of the free space of the disk.
	MaxStoreBytes int64
	// Logger takes the server's warnings and errors; nil for none.
	Logger *slog.Logger
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

// options gives the server's options: streams synced to disk at every write, no signals taken, no monitoring.
func (c Config) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName: "tutti",
		DontListen: c.Listen == "",
		NoSigs:     true,
		NoLog:      c.Logger == nil,
		MaxPayload: maxPayload,

		JetStream:              true,
		StoreDir:               c.Dir,
		SyncAlways:             true,
		JetStreamMaxMemory:     maxMemory,
		JetStreamMaxStore:      c.MaxStoreBytes,
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

// Server is a nats-server with JetStream inside this process.
type Server struct {
	nats *server.Server
	lock *Lock
	// started ends when the goroutine that runs the server has returned, stopped when Stop has done its work.
	started chan struct{}
	once    sync.Once
	stopped chan struct{}
	stopErr error
}

// Start locks cfg.Dir and starts the server on it; it returns when connections are taken, which after a crash may need
// seconds of reading. CodeConflict when another process has the folder, CodeInternal when the server cannot start.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	lock, err := LockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, errors.Join(core.WrapError(core.CodeInternal, "setting up the embedded queue", err), lock.Unlock())
	}
	log := newLogger(cfg.Logger)
	ns.SetLoggerV2(log, false, false, false)

	s := &Server{nats: ns, lock: lock, started: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(s.started)
		ns.Start()
	}()
	if err := s.ready(ctx, log); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// ready waits until the server takes connections, ctx ends or the server gives up.
func (s *Server) ready(ctx context.Context, log *logger) error {
	for !s.nats.ReadyForConnections(readyPoll) {
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
	if !s.nats.JetStreamEnabled() {
		return core.NewError(core.CodeInternal, "the embedded queue started without its streams")
	}
	return nil
}

// InProcessConn gives a connection to the server that never leaves the process.
func (s *Server) InProcessConn() (net.Conn, error) {
	conn, err := s.nats.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded queue: %w", err)
	}
	return conn, nil
}

// URL gives the address for clients of other processes, empty when the server does not listen.
func (s *Server) URL() string {
	addr := s.nats.Addr()
	if addr == nil {
		return ""
	}
	return "nats://" + addr.String()
}

// Stop closes every connection, writes what is unwritten and gives the folder back. It waits for that, or until ctx
// ends, then as CodeUnavailable; stopping goes on all the same. Every call after the first waits for the same end.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		go func() {
			defer close(s.stopped)
			s.nats.Shutdown()
			<-s.started
			s.nats.WaitForShutdown()
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
