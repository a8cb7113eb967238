package transport

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// errReleased is returned by reads of a released request body.
var errReleased = errors.New("the request body was released before it was fully sent")

// requestBody guards the bytes of a request's body against late reads. The HTTP transport may go on reading a body after it has
// returned the response (golang/go#51907), when the caller may already reuse the bytes. Every Read copies under a lock, and Reads
// after release fail, so the bytes belong to the caller again when release returns.
type requestBody struct {
	mu       sync.Mutex
	released bool
}

// wrap replaces the body of a request, and its GetBody, with which the transport sends it again on a new connection if the server
// closed the old one before anything was written. Bodies are bytes.Readers.
func (p *requestBody) wrap(req *http.Request) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	body, again := req.Body, req.GetBody
	req.Body = &bodyReader{p, body}
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		return &bodyReader{p, body}, err
	}
}

// release makes all further reads fail.
func (p *requestBody) release() {
	p.mu.Lock()
	p.released = true
	p.mu.Unlock()
}

type bodyReader struct {
	owner *requestBody
	body  io.ReadCloser
}

// Read copies the next bytes to dst.
func (r *bodyReader) Read(dst []byte) (int, error) {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	if r.owner.released {
		return 0, errReleased
	}
	return r.body.Read(dst)
}

// Close does nothing: release ends a reader.
func (r *bodyReader) Close() error { return nil }
