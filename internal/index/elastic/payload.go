package elastic

import (
	"errors"
	"io"
	"sync"
)

// errReleased ends the sending of a body whose bytes have gone back to their owner.
var errReleased = errors.New("the request body was released before it was sent whole")

// payload lends bytes to the HTTP transport. The transport may go on reading a request body after the answer has come
// (golang/go#51907), so handing out the bytes themselves would let a late read see what their owner wrote into them
// next. Every read copies under the lock, and after release there is nothing left to read: release is the moment from
// which the bytes are the owner's again, whatever the transport still does.
type payload struct {
	mu   sync.Mutex
	data []byte
}

// release takes the bytes back from all readers.
func (p *payload) release() {
	p.mu.Lock()
	p.data = nil
	p.mu.Unlock()
}

// reader gives a reader from the start; the transport asks for another one when it has to send again on a new
// connection because the old one had been closed by the server before anything was written.
func (p *payload) reader() io.ReadCloser { return &payloadReader{payload: p} }

type payloadReader struct {
	payload *payload
	offset  int
}

// Read copies the next bytes out.
func (r *payloadReader) Read(dst []byte) (int, error) {
	r.payload.mu.Lock()
	defer r.payload.mu.Unlock()
	if r.payload.data == nil {
		return 0, errReleased
	}
	if r.offset == len(r.payload.data) {
		return 0, io.EOF
	}
	n := copy(dst, r.payload.data[r.offset:])
	r.offset += n
	return n, nil
}

// Close does nothing: release is what ends a reader.
func (r *payloadReader) Close() error { return nil }
