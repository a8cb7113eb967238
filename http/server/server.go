package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
	// gracefulShare divides the time left at a stop: requests in flight get 1/gracefulShare of it. The rest of the process needs the
	// remainder, and a client that never ends its body would use all of it.
	gracefulShare = 2
)

// Server listens and serves a handler. Create it with New, and call Start once and Stop at the end.
type Server struct {
	server *http.Server
	logger *slog.Logger
	limits *connLimits
	addr   net.Addr
	failed chan error
	done   chan struct{}
	// stopping is closed when Stop begins.
	stopping chan struct{}
	stop     sync.Once
	// draining is set when Drain begins.
	draining atomic.Bool
	// certificate is nil without TLS.
	certificate *Certificate
}

// UseTLS makes the Server accept only TLS 1.2 and later, with HTTP/2 and HTTP/1.1. It must be called before Start.
func (s *Server) UseTLS(certificate *Certificate) { s.certificate = certificate }

type stoppingKey struct{}

// StoppingOf returns a channel that is closed when the request's Server begins to stop. Unbounded responses must end then; the
// request's context stays valid, so that other responses can finish. The channel is nil for a request without a Server.
func StoppingOf(ctx context.Context) <-chan struct{} {
	stopping, _ := ctx.Value(stoppingKey{}).(chan struct{})
	return stopping
}

// Config configures a Server. The zero value is the default.
type Config struct {
	// MaxConnections is how many connections are served at once, at most about three quarters of the files that this process may
	// have open. A few more serve only /ping, /ready and /metrics, and 503 otherwise. Default: half of those files, at most
	// 8192.
	MaxConnections int
	// MaxConnectionsPerAddress is how many of them one IPv4 address, or one /64 network of IPv6, may have. Default: half.
	MaxConnectionsPerAddress int
	// TrustedProxies are the addresses without this limit.
	TrustedProxies []netip.Prefix
	// Logger receives net/http's messages about broken connections, and stops that aborted requests. Default: nothing is logged.
	Logger *slog.Logger
	// Metrics counts connections; nil counts nothing.
	Metrics *Metrics
}

// New returns a Server for handler.
func New(handler http.Handler, cfg Config) *Server {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	stopping := make(chan struct{})
	limits := newConnLimits(cfg, maxFiles())
	s := &Server{
		logger: logger,
		limits: limits,
		server: &http.Server{
			DisableGeneralOptionsHandler: true,
			ReadHeaderTimeout:            readHeaderTimeout,
			IdleTimeout:                  idleTimeout,
			MaxHeaderBytes:               maxHeaderBytes,
			HTTP2: &http.HTTP2Config{
				MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: maxReceived, MaxReceiveBufferPerStream: maxReceived,
			},
			ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
			BaseContext: func(net.Listener) context.Context {
				return context.WithValue(context.Background(), stoppingKey{}, stopping)
			},
			ConnContext: withConn,
			ConnState:   limits.changed,
		},
		failed:   make(chan error, 1),
		done:     make(chan struct{}),
		stopping: stopping,
	}
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
	return s
}

// Start listens on a TCP address such as 127.0.0.1:8080 and serves until Stop. It returns when connections are accepted; an address
// that cannot be listened on is CodeInvalid. It must be called only once.
func (s *Server) Start(ctx context.Context, listen string) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("listening on %s", listen),
			Hint: "choose an address of this machine and a port that no other process uses", Err: err,
		}
	}
	s.Serve(listener)
	return nil
}

// Serve is Start with a given listener.
func (s *Server) Serve(listener net.Listener) {
	s.addr = listener.Addr()
	listener = problemListener{listener, new(sync.Pool), s.limits}
	if s.certificate != nil {
		listener = newTLSListener(listener, s.certificate.config())
	}
	go func() {
		defer close(s.done)
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- core.WrapError(core.CodeInternal, "serving HTTP", err)
		}
	}()
}

// Addr returns the address that Start listens on, nil before.
func (s *Server) Addr() net.Addr { return s.addr }

// Failed returns the error of a server that ended without Stop.
func (s *Server) Failed() <-chan error { return s.failed }

// Drain serves requests for a delay, or until ctx ends, and closes each connection after its next response, so that clients connect to
// other processes. Stop comes next.
func (s *Server) Drain(ctx context.Context, delay time.Duration) {
	s.draining.Store(true)
	if s.addr == nil {
		return
	}
	_ = retry.Sleep(ctx, delay) // its error means that ctx has ended
}

// Stop accepts no new connections, closes idle ones and ends streams, whose clients reconnect to the next process. It waits for
// requests in flight for half of the time until ctx's deadline (until ctx ends if it has none), then closes their connections,
// and waits for the serving goroutine. Closed requests are logged but are no error, because their clients retry. A second Stop does
// nothing.
func (s *Server) Stop(ctx context.Context) error {
	started := time.Now()
	graceful, cancel := ctx, context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		graceful, cancel = context.WithTimeout(ctx, time.Until(deadline)/gracefulShare)
	}
	defer cancel()
	s.stop.Do(func() { close(s.stopping) })
	err := s.server.Shutdown(graceful)
	if err != nil && graceful.Err() != nil {
		s.logger.WarnContext(ctx, "requests were cut at shutdown", "waited", time.Since(started))
		err = s.server.Close()
	}
	if err != nil {
		err = core.WrapError(core.CodeInternal, "closing the HTTP listener", err)
	}
	if s.addr != nil {
		<-s.done
	}
	return err
}
