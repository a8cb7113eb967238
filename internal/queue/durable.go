package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/retry"
)

const (
	// probeMaxAge is how long Ready relies on the last probe: any client may call /ready, and each probe is a synced
	// write to every stream.
	probeMaxAge = 2 * time.Second
	// probePause is the minimum time between two probes of healthy streams.
	probePause = 250 * time.Millisecond
	// slowWriteTime is how long a write may take before the streams are probed: nats-server does not answer a message
	// that it could not write.
	slowWriteTime = 250 * time.Millisecond
	// storageErrorPoll is how often an in-process server is checked for a storage error while a probe waits for its
	// answer.
	storageErrorPoll = 50 * time.Millisecond
	// minReprobe and maxReprobe bound the pause between two probes of streams that cannot store, maxRestartPause the
	// pause after a restart that did not help.
	minReprobe      = 100 * time.Millisecond
	maxReprobe      = 2 * time.Second
	maxRestartPause = time.Minute
)

// errProbeUndelivered marks probe errors that say nothing about storage: the probe did not reach its stream.
var errProbeUndelivered = errors.New("the probe did not reach its stream")

// durability tracks whether every stream can store messages.
type durability struct {
	// requested has an element when a probe is requested.
	requested chan struct{}
	// denied has an element when the server denied publishing a probe.
	denied chan error

	mu sync.Mutex
	// err is why the streams cannot store, nil while the last probe succeeded; at is when the last probe ended.
	err error
	at  time.Time
	// waitingSince is since when a caller of ready has waited for a probe; zero for none.
	waitingSince time.Time
	// probed is closed when the next probe ends.
	probed chan struct{}
	// healthy is cancelled, with err as its cause, when a probe finds that the streams cannot store.
	healthy context.Context //nolint:containedctx // cancelled when the streams cannot store, not when a call ends
	fail    context.CancelCauseFunc
}

func newDurability() *durability {
	d := &durability{requested: make(chan struct{}, 1), denied: make(chan error, 1), probed: make(chan struct{})}
	d.healthy, d.fail = context.WithCancelCause(context.Background())
	return d
}

// requestProbe requests a probe without waiting for it.
func (d *durability) requestProbe() {
	select {
	case d.requested <- struct{}{}:
	default:
	}
}

// probeDenied reports whether err says that the server denied publishing a probe, and ends that probe.
func (d *durability) probeDenied(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), probePrefix) {
		return false
	}
	select {
	case d.denied <- err:
	default:
	}
	return true
}

// recordProbe records the outcome of a probe.
func (d *durability) recordProbe(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil && !errors.Is(err, errProbeUndelivered):
		d.fail(err)
	case d.healthy.Err() != nil:
		d.healthy, d.fail = context.WithCancelCause(context.Background())
	}
	d.err, d.at, d.waitingSince = err, time.Now(), time.Time{}
	close(d.probed)
	d.probed = make(chan struct{})
}

// health returns a context that is cancelled when a probe finds that the streams cannot store.
func (d *durability) health() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.healthy
}

// ready returns the outcome of a probe that is not older than probeMaxAge, or waits for one. If ctx ends first, an
// earlier successful probe counts for callTimeout.
func (d *durability) ready(ctx context.Context) error {
	for {
		d.mu.Lock()
		err, fresh, probed := d.err, time.Since(d.at) < probeMaxAge, d.probed
		if !fresh && d.waitingSince.IsZero() {
			d.waitingSince = time.Now()
		}
		proven, awaited := !d.at.IsZero(), d.waitingSince
		d.mu.Unlock()
		if err != nil || fresh {
			return err
		}
		d.requestProbe()
		select {
		case <-probed:
		case <-ctx.Done():
			if proven && time.Since(awaited) < callTimeout {
				return nil
			}
			return &core.Error{
				Code: core.CodeUnavailable, Message: "did not answer within " + readyTimeout.String(),
				RetryAfter: retryWhenDown, Err: ctx.Err(),
			}
		}
	}
}

// Ready reports whether the queue is connected and every stream stored a probe within the last seconds; CodeUnavailable
// otherwise. A stream that holds as many messages as it may is ready.
func (q *Queue) Ready(ctx context.Context) error {
	if !q.nc.IsConnected() {
		return &core.Error{Code: core.CodeUnavailable, Message: "the queue is not connected", RetryAfter: retryWhenDown}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return q.durability.ready(ctx)
}

// write runs one write to a stream, for at most callTimeout. It fails at once while the streams cannot store, and
// ends early when a probe finds that during the write: nats-server does not answer a message that it could not write.
func (q *Queue) write(ctx context.Context, write func(ctx context.Context) error) error {
	state := q.durability.health()
	if state.Err() != nil {
		return context.Cause(state)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer context.AfterFunc(state, cancel)()
	defer time.AfterFunc(slowWriteTime, q.durability.requestProbe).Stop()
	err := write(ctx)
	if err != nil && state.Err() != nil {
		return context.Cause(state)
	}
	if err != nil && core.CodeOf(wrapError("writing", err)) == core.CodeUnavailable {
		q.durability.requestProbe()
	}
	return err
}

// runProbes probes the streams on request, until ctx ends. While they cannot store, it repeats the probe, restarts an
// in-process server that reports a storage error, and restores streams that do not accept probes.
func (q *Queue) runProbes(ctx context.Context) {
	for {
		select {
		case <-q.durability.requested:
		case <-ctx.Done():
			return
		}
		err := q.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !q.nc.IsConnected() {
			continue // the client reconnects, and calls fail at once until then
		}
		q.durability.recordProbe(err)
		if err != nil {
			q.log.Warn("queue cannot store messages", "err", err)
			q.probeUntilHealthy(ctx, err)
		}
		if retry.Sleep(ctx, probePause) != nil {
			return
		}
	}
}

// probeUntilHealthy returns when the streams can store again, or with ctx. err is the outcome of the last probe.
func (q *Queue) probeUntilHealthy(ctx context.Context, err error) {
	rest, restartRest := minReprobe, maxReprobe
	for {
		if retry.Sleep(ctx, retry.Jitter(rest)) != nil {
			return
		}
		restarted := q.restartServer(ctx)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			q.restoreStreams(ctx)
		}
		err = q.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		q.durability.recordProbe(err)
		if err == nil {
			q.log.Info("queue can store messages again")
			return
		}
		if rest = min(2*rest, maxReprobe); restarted {
			rest, restartRest = restartRest, min(2*restartRest, maxRestartPause)
		}
	}
}

// restartServer restarts an in-process server that reports a storage error, and reports whether it did.
func (q *Queue) restartServer(ctx context.Context) bool {
	if q.server == nil {
		return false
	}
	why := q.server.StorageError()
	if why == nil {
		return false
	}
	if err := q.server.Restart(ctx); err != nil {
		q.log.Debug("embedded queue not restarted", "err", err)
		return false
	}
	q.metrics.countRestart()
	q.log.Warn("embedded queue restarted", "reason", why)
	q.connection.awaitConnected(ctx, q.nc, time.Now().Add(callTimeout), nil)
	return true
}

// restoreStreams sets the configuration of the streams again: a process of another version may have changed it.
func (q *Queue) restoreStreams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, cfg := range q.cfg.streamConfigs() {
		if _, err := q.stream(ctx, cfg); err != nil {
			q.log.Warn("streams not restored", "err", err)
			return
		}
	}
	q.log.Info("streams restored")
}

// probe stores a small message in each stream and returns why a stream could not store it: a write to one stream says
// nothing about another.
func (q *Queue) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	select {
	case earlier := <-q.durability.denied:
		q.log.Debug("an earlier probe was denied", "err", earlier)
	default:
	}
	group, probing := errgroup.WithContext(ctx)
	unbound := make(chan error, len(streams()))
	for _, stream := range streams() {
		group.Go(func() error {
			err := q.probeStream(probing, stream)
			if errors.Is(err, jetstream.ErrNoStreamResponse) {
				unbound <- err // an error of another stream, which cannot store, has priority
				return nil
			}
			return err
		})
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		q.watchProbe(probing, fail)
	}()
	err := group.Wait() // ends probing
	<-watched
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	fail(nil)
	if err == nil && len(unbound) > 0 {
		err = <-unbound
	}
	return probeError(err)
}

// probeError returns the error of a probe that failed with err.
func probeError(err error) error {
	if err == nil {
		return nil
	}
	e := &core.Error{
		Code: core.CodeUnavailable, Message: "the queue cannot store messages now", RetryAfter: retryWhenDown, Err: err,
		Hint: "check the space on its disk; it continues by itself",
	}
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		e.Message = "the queue cannot be checked: a stream does not have the subject " + probePrefix + "*"
		e.Hint = "another version of tutti may have set it up; it is set up again by itself"
		e.Err = fmt.Errorf("%w: %w", errProbeUndelivered, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		e.Message = "the queue cannot be checked: its credentials do not allow to publish to " + probePrefix + ">"
		e.Hint = "allow it on the server"
		e.Err = fmt.Errorf("%w: %w", errProbeUndelivered, err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "the queue did not answer a write within " + callTimeout.String()
		e.Hint = "check nats-server and its log; it continues by itself"
	}
	return e
}

// watchProbe ends a probe that cannot get an answer, until ctx ends.
func (q *Queue) watchProbe(ctx context.Context, fail context.CancelCauseFunc) {
	tick := time.NewTicker(storageErrorPoll)
	defer tick.Stop()
	for {
		if q.server != nil {
			if err := q.server.StorageError(); err != nil {
				fail(err)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case err := <-q.durability.denied:
			fail(err)
			return
		case <-tick.C:
		}
	}
}

func (q *Queue) probeStream(ctx context.Context, stream string) error {
	m := &nats.Msg{Subject: probePrefix + stream}
	opts := []jetstream.PublishOpt{
		jetstream.WithExpectStream(stream), jetstream.WithRetryAttempts(publishRetries), jetstream.WithRetryWait(publishRetryWait),
	}
	_, err := q.js.PublishMsg(ctx, m, opts...)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == errCodeStoreFailed {
		return nil // the stream is full: it answers, and stores again when messages have been processed
	}
	return err
}
