package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tutti/internal/base/retry"
)

// Process is the life of the work of all repositories in this process, from Start to Stop.
type Process struct {
	heartbeat *heartbeat
	// draining ends first: from then on no messages are pulled, and goroutines that wait requeue their messages. work ends
	// when the context of Stop ends.
	draining, work        context.Context //nolint:containedctx // the two ends of the life that Start and Stop bound
	stopPulling, stopWork context.CancelFunc
	// loops end with draining and start the work in flight; the heartbeat outlives both.
	loops, inFlight, heartbeats sync.WaitGroup
	startedAt                   time.Time
	startOnce, stopOnce         sync.Once
}

// NewProcess returns a process that sends heartbeats every third of ackWait.
func NewProcess(ackWait time.Duration) *Process {
	p := &Process{heartbeat: newHeartbeat(ackWait / 3)}
	p.draining, p.stopPulling = context.WithCancel(context.Background())
	p.work, p.stopWork = context.WithCancel(context.Background())
	return p
}

// Start starts the heartbeat and the loops, which must end when Draining does. It returns at once, and has an effect only
// once.
func (p *Process) Start(loops ...func()) {
	p.startOnce.Do(func() {
		p.startedAt = time.Now()
		p.heartbeats.Go(func() { p.heartbeat.run(p.work) })
		for _, f := range loops {
			p.loops.Go(f)
		}
	})
}

// Stop stops pulling, waits for the work in flight until ctx ends, then has the rest requeued. Start has no effect
// afterwards.
func (p *Process) Stop(ctx context.Context) error {
	var err error
	p.stopOnce.Do(func() {
		p.startOnce.Do(func() {})
		p.stopPulling()
		done := make(chan struct{})
		go func() {
			p.loops.Wait() // a fetch in flight may still return messages
			p.inFlight.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			err = fmt.Errorf("stopping consumers: work in flight was requeued: %w", ctx.Err())
		}
		p.stopWork()
		<-done
		p.heartbeats.Wait()
	})
	return err
}

// Draining returns a context that ends when Stop begins.
func (p *Process) Draining() context.Context { return p.draining }

// Stopping reports whether work with the given context ends because the process stops.
func (p *Process) Stopping(ctx context.Context) bool {
	return ctx.Err() != nil || p.draining.Err() != nil
}

// Sleep waits for d. It returns an error when the process stops before.
func (p *Process) Sleep(d time.Duration) error { return retry.Sleep(p.draining, d) }

// Held counts the messages in flight that have a heartbeat.
func (p *Process) Held() int {
	p.heartbeat.mu.Lock()
	defer p.heartbeat.mu.Unlock()
	return len(p.heartbeat.held)
}
