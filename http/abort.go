package http

import (
	"context"
	"net"
	"net/http"
)

// abortResponse aborts a response that failed after its status was sent, so that the client does not take a part for the whole. It
// panics with http.ErrAbortHandler: net/http then omits the end of the body and closes the connection. err is logged.
//
// In HTTP/1.0, which some proxies use for their backends, the end of the connection ends the body, so the connection is reset.
func abortResponse(r *http.Request, err error) error {
	exchangeOf(r.Context()).err = err
	if conn := connOf(r.Context()); conn != nil && !r.ProtoAtLeast(1, 1) {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		if r.TLS != nil {
			_ = conn.Close() // net/http would send the TLS close_notify
		}
	}
	panic(http.ErrAbortHandler)
}

type connKey struct{}

// withConn stores a connection for connOf.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, problemConnOf(conn))
}

// connOf returns the connection of a request, nil for one that did not come through a Server.
func connOf(ctx context.Context) *problemConn {
	conn, _ := ctx.Value(connKey{}).(*problemConn)
	return conn
}
