package download

import (
	"io"
	"time"

	"tutti/internal/core"
)

// slowClientWriter is what a download is written to. Its client may be slow, but not for ever: it holds a place among the downloads, and,
// while documents are read, what the index keeps for who reads one moment of it. So a client may make a download wait for a time,
// and beyond that for as long as what it has taken needs at the lowest rate. What the server takes to make the file is not counted.
type slowClientWriter struct {
	w     io.Writer
	now   func() time.Time
	grace time.Duration
	// rate is in bytes a second.
	rate   int64
	taken  int64
	waited time.Duration
}

var _ io.Writer = (*slowClientWriter)(nil)

// Write passes bytes on.
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

// tooSlow is the error of a download whose client does not take it.
func tooSlow() error {
	return &core.Error{
		Code: core.CodeUnavailable, Message: "writing a download: the client takes it too slowly",
		Hint: "ask for fewer documents or columns at once",
	}
}
