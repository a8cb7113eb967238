package http

import (
	"context"
	"net"
	"net/http"
)

// abortResponse ends an answer that cannot be finished after it has begun, so that its client never takes a part for the whole. It does
// not return: net/http then leaves out what would end the body, and closes the connection. err is for the log.
//
// In HTTP/1.0, which proxies still speak to what is behind them, the end of the connection is that of the body, so there the
// connection is reset, which no client takes for an end.
func abortResponse(r *http.Request, err error) error {
	exchangeOf(r.Context()).err = err
	if conn := connOf(r.Context()); conn != nil && !r.ProtoAtLeast(1, 1) {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		if r.TLS != nil {
			_ = conn.Close() // net/http would send the end that TLS marks
		}
	}
	panic(http.ErrAbortHandler)
}

type connKey struct{}

// withConn keeps a connection for connOf.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, problemConnOf(conn))
}

// connOf returns the connection of a request, nil for one that no Server got.
func connOf(ctx context.Context) *problemConn {
	conn, _ := ctx.Value(connKey{}).(*problemConn)
	return conn
}
