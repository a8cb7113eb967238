package testkit

import (
	"compress/gzip"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// faultWriter writes one answer, and does to it what the fault says.
type faultWriter struct {
	http.ResponseWriter

	request *http.Request
	closing <-chan struct{}
	fault   *Fault
	status  int
}

// send writes a whole answer, compressed where zip says so and the client takes it.
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
		_, _ = packed.Write(body) // the client may have gone
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
		w.broken(body[at:])
	}
}

// breakAt returns the number of bytes after which the fault strikes.
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

// broken does what the fault says in the middle of a body; rest is what has not been sent.
func (w *faultWriter) broken(rest []byte) {
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	if w.fault.Cut > 0 || !w.fault.wait(w.request, w.closing) {
		reset(w.ResponseWriter)
		return
	}
	_, _ = w.Write(rest)
}

// reset breaks the connection of an answer off with a TCP reset. What was flushed before still reaches the client.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // gone already
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
