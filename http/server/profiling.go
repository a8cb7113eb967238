package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"tutti/internal/core"
)

// Profiling serves the profiles of the process (net/http/pprof) on a listener of its own. It checks no token.
type Profiling struct {
	server *http.Server
	addr   net.Addr
	done   chan struct{}
}

// StartProfiling serves /debug/pprof/ on a TCP address until Stop. An address without a host, such as :6060, is on 127.0.0.1. One that
// cannot be listened on is CodeInvalid.
func StartProfiling(ctx context.Context, listen string, log *slog.Logger) (*Profiling, error) {
	if host, port, err := net.SplitHostPort(listen); err == nil && host == "" {
		listen = net.JoinHostPort("127.0.0.1", port)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, &core.Error{
			Code: core.CodeInvalid, Message: fmt.Sprintf("listening for profiles on %s", listen),
			Hint: "choose another address for server.profiling, or leave it empty", Err: err,
		}
	}
	// The command line is not served: it may hold secrets.
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	p := &Profiling{
		server: &http.Server{
			Handler: mux, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		addr: listener.Addr(), done: make(chan struct{}),
	}
	go func() {
		defer close(p.done)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("profiles are no longer served", "err", err)
		}
	}()
	return p, nil
}

// Addr returns the address that StartProfiling listens on.
func (p *Profiling) Addr() net.Addr { return p.addr }

// Stop closes the listener and all connections, also those of unfinished profiles, and waits for the serving goroutine.
func (p *Profiling) Stop(context.Context) error {
	err := p.server.Close()
	<-p.done
	return err
}
