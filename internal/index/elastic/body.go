package elastic

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// errReleased ends the sending of a body whose bytes have gone back to their owner.
var errReleased = errors.New("the request body was released before it was sent whole")

// requestBody lends the body of a request to the HTTP transport. The transport may go on reading it after the answer has come
// (golang/go#51907), so handing out the body itself would let a late read see what the owner of its bytes wrote into them
// next. Every read copies under the lock, and after release there is nothing left to read: release is the moment from
// which the bytes are the owner's again, whatever the transport still does.
type requestBody struct {
	mu       sync.Mutex
	released bool
}

// wrap replaces the body of a request, and those that the transport asks for when it has to send again on a new connection
// because the old one had been closed by the server before anything was written. Bodies are bytes.Readers.
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

// release takes the bytes back from all readers.
func (p *requestBody) release() {
	p.mu.Lock()
	p.released = true
	p.mu.Unlock()
}

type bodyReader struct {
	owner *requestBody
	body  io.ReadCloser
}

// Read copies the next bytes out.
func (r *bodyReader) Read(dst []byte) (int, error) {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	if r.owner.released {
		return 0, errReleased
	}
	return r.body.Read(dst)
}

// Close does nothing: release is what ends a reader.
func (r *bodyReader) Close() error { return nil }
