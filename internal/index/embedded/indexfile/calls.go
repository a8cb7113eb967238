package indexfile

import (
	"sync"

	"tutti/internal/core"
)

// calls counts the calls in progress on a File, so that Close can wait for them.
type calls struct {
	// mu guards closed and what adds to running. end does not hold it while it waits, so that a callback may make further calls.
	mu      sync.Mutex
	running sync.WaitGroup
	closed  bool
	// closing is closed when Close starts, to cancel long operations. stop is closed when no call is in progress.
	closing, stop chan struct{}
}

// begin registers a call, which must end with running.Done. It returns an error when the index is closed.
func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed()
	}
	c.running.Add(1)
	return nil
}

// end rejects further calls and waits for those in progress.
func (c *calls) end() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	close(c.closing)
	c.running.Wait()
	close(c.stop)
}

func errClosed() error {
	return core.WrapError(core.CodeUnavailable, "the index is closed", core.ErrIndexUnreachable)
}
