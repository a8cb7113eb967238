package ingest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// Outbox holds the changes of the built-in metadata repository that were not sent yet.
type Outbox interface {
	// Relay passes the oldest unsent changes, at most limit, to publish, which returns an error for each of them, or nil
	// for all, and marks those without an error as sent. It returns how many it passed to publish. publish may be called
	// again, also with the same changes.
	Relay(ctx context.Context, limit int, publish func(ctx context.Context, changes []datamodel.Change) []error) (given int, err error)
	// Changed receives a value after this process committed a change.
	Changed() <-chan struct{}
}

// maxRelayTime is how long one relay may take before Health reports an error.
const maxRelayTime = 15 * time.Second

// RelayConfig configures a Relay. The zero value is the default.
type RelayConfig struct {
	// Limit is how many changes are read from the outbox at once. Default 256.
	Limit int
	// Concurrency is how many of them are published at once; these may share a write of the queue. Default 256.
	Concurrency int
	// Poll is the mean interval at which the outbox is polled without a change of this process: a process that shares it
	// may have ended with unsent changes. Default 1 s.
	Poll time.Duration
	// RetryMin and RetryMax are the shortest and the longest pause after an error. Default 50 ms and 5 s.
	RetryMin, RetryMax time.Duration
	// Logger receives outages and changes that became dead letters. Default: nothing is logged.
	Logger *slog.Logger
}

func (c RelayConfig) validate() error {
	if c.Limit < 0 || c.Concurrency < 0 || c.Poll < 0 || c.RetryMin < 0 || c.RetryMax < 0 {
		return core.NewError(core.CodeInvalid, "the limits and pauses of an outbox relay must not be negative")
	}
	return nil
}

func (c RelayConfig) withDefaults() RelayConfig {
	if c.Limit == 0 {
		c.Limit = 256
	}
	if c.Concurrency == 0 {
		c.Concurrency = 256
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.RetryMin == 0 {
		c.RetryMin = 50 * time.Millisecond
	}
	if c.RetryMax == 0 {
		c.RetryMax = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Relay publishes a Request for each change in an outbox, soon after it was committed, and retries until the queue
// has stored it, so that no change is lost (RELIABILITY, P9). The change's id is the Request's, by which the queue
// drops duplicates. Any number of processes may each have a Relay on one outbox.
type Relay struct {
	service    *Service
	outbox     Outbox
	repository string
	cfg        RelayConfig

	cancel   context.CancelFunc
	stopping chan struct{}
	stop     sync.Once
	ended    chan struct{}

	mu sync.Mutex
	// lastRelay is when the last relay ended, or the first began.
	lastRelay time.Time
	// lastErr is why the last relay left changes unsent, failingSince since when; logged are the reasons that were logged since then.
	lastErr      error
	logged       []string
	failingSince time.Time
}

// NewRelay returns the Relay of the repository with this code, whose changes are in outbox; it publishes as s does.
// CodeNotFound when the repository is not configured, CodeUnsupported when s stores no dead letters: a change that
// can never be published would be lost, or block all others.
func NewRelay(s *Service, outbox Outbox, repository string, cfg RelayConfig) (*Relay, error) {
	if s.cfg.DeadLetters == nil {
		return nil, errNoDeadLetters()
	}
	if _, err := s.repository(repository); err != nil {
		return nil, err
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Relay{
		service: s, outbox: outbox, repository: repository, cfg: cfg.withDefaults(),
		stopping: make(chan struct{}), ended: make(chan struct{}),
	}, nil
}

// Start starts the relay and returns at once. It must be called only once.
func (r *Relay) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.mu.Lock()
	r.lastRelay = time.Now()
	r.mu.Unlock()
	go r.run(ctx)
}

// Stop finishes and marks the changes in flight, and waits for that, at most until ctx ends. Unsent changes are sent
// after the next start. It may be called again; it does nothing before Start.
func (r *Relay) Stop(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.stop.Do(func() { close(r.stopping) })
	defer r.cancel()
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the outbox relay", ctx.Err())
	}
}

// Health returns nil when the last relay left nothing unsent and was not long ago. Its errors are CodeUnavailable,
// with a message that is safe to display.
func (r *Relay) Health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastErr == nil && (r.lastRelay.IsZero() || time.Since(r.lastRelay) < maxRelayTime+2*r.cfg.Poll) {
		return nil
	}
	if r.lastErr == nil {
		return core.NewError(core.CodeUnavailable, "the outbox has not been read recently: the store or the queue does not answer")
	}
	return core.WrapError(core.CodeUnavailable, "changes are waiting to be sent: "+core.MessageOf(r.lastErr), r.lastErr)
}

// run relays until stopping is closed; ctx ends the changes in flight.
func (r *Relay) run(ctx context.Context) {
	defer close(r.ended)
	for failures := 0; r.running(); {
		given, sent, err := r.relayOnce(ctx)
		r.recordOutcome(ctx, err)
		switch {
		case err == nil && given == 0:
			failures = 0
			r.await(r.cfg.Poll*3/4+spreadOver(r.cfg.Poll/2), r.outbox.Changed())
		case err == nil:
			failures = 0
		default:
			if sent > 0 {
				failures = 0
			}
			r.await(retry.Delay(failures, r.cfg.RetryMin, r.cfg.RetryMax), nil)
			failures++
		}
	}
}

// relayOnce sends the changes in the outbox, up to its limit, and returns how many it found there and how many it
// sent. The error is the first one that left a change unsent or unmarked.
func (r *Relay) relayOnce(ctx context.Context) (given, sent int, err error) {
	round := &relayResult{}
	given, err = r.outbox.Relay(ctx, r.cfg.Limit, func(ctx context.Context, changes []datamodel.Change) []error {
		round = r.publish(ctx, changes)
		return round.errs
	})
	if err != nil {
		return given, 0, err
	}
	return given, round.sent, round.first
}

func (r *Relay) running() bool {
	select {
	case <-r.stopping:
		return false
	default:
		return true
	}
}

// await waits for d, for a change, or for Stop.
func (r *Relay) await(d time.Duration, changed <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-changed:
	case <-r.stopping:
	}
}

// recordOutcome stores the outcome of a relay for Health, and logs each reason of an outage once, and its end.
func (r *Relay) recordOutcome(ctx context.Context, err error) {
	reason := core.MessageOf(err)
	r.mu.Lock()
	before, since := r.lastErr, r.failingSince
	r.lastErr, r.lastRelay = err, time.Now()
	if before == nil {
		r.failingSince, r.logged = time.Now(), nil
	}
	news := err != nil && !slices.Contains(r.logged, reason)
	if news {
		r.logged = append(r.logged, reason)
	}
	r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case news:
		r.cfg.Logger.WarnContext(ctx, "changes in the outbox were not sent and are retried", "repository", r.repository, "err", err)
	case err == nil && before != nil:
		r.cfg.Logger.InfoContext(ctx, "changes in the outbox are sent again", "repository", r.repository, "after", time.Since(since))
	}
}
