package download

import (
	"io"
	"time"

	"tutti/internal/core"
)

// slowClientWriter aborts a download whose client reads too slowly. A slow client occupies one of the concurrent downloads and,
// while documents are read, a snapshot of the index. It may block the download for the grace time plus the time that its bytes
// take at the minimum rate. The time that the server needs to produce the file does not count.
type slowClientWriter struct {
	w     io.Writer
	now   func() time.Time
	grace time.Duration
	// rate is in bytes per second.
	rate   int64
	taken  int64
	waited time.Duration
}

var _ io.Writer = (*slowClientWriter)(nil)

// Write writes to the underlying writer.
func (p *slowClientWriter) Write(b []byte) (int, error) {
	began := p.now()
	n, err := p.w.Write(b)
	p.waited += p.now().Sub(began)
	p.taken += int64(n)
	if err == nil && (p.waited-p.grace).Seconds() > float64(p.taken)/float64(p.rate) {
		err = tooSlow()
	}
	return n, err
}

// tooSlow returns the error of a download whose client reads too slowly.
func tooSlow() error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "writing a download: the client reads it too slowly",
		Hint: "request fewer documents or columns at once",
	}
}
