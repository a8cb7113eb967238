package testkit

import (
	"compress/gzip"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// faultWriter writes one response and injects the fault.
type faultWriter struct {
	http.ResponseWriter

	request *http.Request
	closing <-chan struct{}
	fault   *Fault
	status  int
}

// send writes a complete response, compressed with zip when the client accepts it.
func (w *faultWriter) send(contentType string, zip bool, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	status := max(w.status, http.StatusOK)
	if w.fault != nil && w.fault.Truncate > 0 {
		body = body[:min(len(body), w.fault.Truncate)]
	}
	if zip && strings.Contains(w.request.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		packed := gzip.NewWriter(w)
		_, _ = packed.Write(body) // the client may have disconnected
		_ = packed.Close()
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	at := len(body)
	if w.fault != nil {
		at = w.breakAt(len(body))
	}
	_, _ = w.Write(body[:at])
	if at < len(body) {
		w.interrupt(body[at:])
	}
}

// breakAt returns the number of bytes after which the fault occurs.
func (w *faultWriter) breakAt(size int) int {
	switch {
	case w.fault.Cut > 0:
		return min(size, w.fault.Cut)
	case w.fault.StallAfter > 0:
		return min(size, w.fault.StallAfter)
	default:
		return size
	}
}

// interrupt injects the fault in the middle of a body; rest is the unsent part.
func (w *faultWriter) interrupt(rest []byte) {
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	if w.fault.Cut > 0 || !w.fault.wait(w.request, w.closing) {
		reset(w.ResponseWriter)
		return
	}
	_, _ = w.Write(rest)
}

// reset closes the connection with a TCP reset. Flushed data still reaches the client.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // already closed
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
