package http

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
	"time"

	"tutti/internal/core"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
)

// Server listens and answers with a handler. Make it with NewServer, Start it once, Stop it.
type Server struct {
	server *nethttp.Server
	addr   net.Addr
	failed chan error
	done   chan struct{}
}

// NewServer makes a Server for handler. logger takes what net/http has to say of broken connections; nil for nothing.
func NewServer(handler nethttp.Handler, logger *slog.Logger) *Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Server{
		server: &nethttp.Server{
			Handler:                      handler,
			DisableGeneralOptionsHandler: true,
			ReadHeaderTimeout:            readHeaderTimeout,
			IdleTimeout:                  idleTimeout,
			MaxHeaderBytes:               maxHeaderBytes,
			ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		},
		failed: make(chan error, 1),
		done:   make(chan struct{}),
	}
}

// Start listens on a TCP address such as 127.0.0.1:8080 and serves until Stop. It returns once connections are taken;
// an address that cannot be listened on is CodeInvalid. A Server is started once.
func (s *Server) Start(ctx context.Context, listen string) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("listening on %s", listen),
			Hint: "choose an address of this machine and a port that nobody else listens on", Err: err,
		}
	}
	s.addr = listener.Addr()
	go func() {
		defer close(s.done)
		if err := s.server.Serve(problemListener{listener}); !errors.Is(err, nethttp.ErrServerClosed) {
			s.failed <- core.WrapError(core.CodeInternal, "serving HTTP", err)
		}
	}()
	return nil
}

// Addr gives the address that Start listens on, nil before.
func (s *Server) Addr() net.Addr { return s.addr }

// Failed gives the error of a server that ended without Stop.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop takes no new connection, waits for requests in hand until ctx ends, then cuts them, and waits for the serving
// goroutine. It gives ctx's error, as CodeUnavailable, when it had to cut. A second Stop does nothing.
func (s *Server) Stop(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = core.WrapError(core.CodeUnavailable, "requests were cut at shutdown", errors.Join(err, s.server.Close()))
	}
	if s.addr != nil {
		<-s.done
	}
	return err
}
