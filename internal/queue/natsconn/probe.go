package natsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

const (
	// ProbePrefix starts the subject of a stream's probe. The probe of REQUESTS stays in the stream, one message above
	// MaxPending.
	ProbePrefix = "tutti.probe."
	// probeMaxAge is how long Ready relies on the last probe: any client may call /ready, and each probe is a synced
	// write to every stream.
	probeMaxAge = 2 * time.Second
	// probePause is the minimum time between two probes of healthy streams.
	probePause = 250 * time.Millisecond
	// storageErrorPoll is how often an in-process server is checked for a storage error while a probe waits for its
	// answer.
	storageErrorPoll = 50 * time.Millisecond
	// minReprobe and maxReprobe bound the pause between two probes of streams that cannot store, maxRestartPause the
	// pause after a restart that did not help.
	minReprobe      = 100 * time.Millisecond
	maxReprobe      = 2 * time.Second
	maxRestartPause = time.Minute
)

// errOtherSettings marks probe errors of a stream that a process of another version has set up.
var errOtherSettings = errors.New("the stream has other settings")

// errProbeUndelivered marks probe errors that say nothing about storage: the probe did not reach its stream.
var errProbeUndelivered = errors.New("the probe did not reach its stream")

// Ready reports whether the queue is connected and every stream stored a probe within the last seconds; CodeUnavailable
// otherwise. A stream that holds as many messages as it may is ready.
func (c *Conn) Ready(ctx context.Context) error {
	if !c.NC.IsConnected() {
		e := &core.Error{Code: core.CodeUnavailable, Message: "the queue is not connected", RetryAfter: retryWhenDown}
		if failed := c.failed.Load(); failed != nil {
			e.Message, e.Hint, e.Err = e.Message+": "+failed.Message, failed.Hint, failed.Err
		}
		return e
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.Durability.ready(ctx)
}

// RunProbes probes the streams on request, until ctx ends. While they cannot store, it repeats the probe, restarts an
// in-process server that reports a storage error, and restores streams that do not accept probes.
func (c *Conn) RunProbes(ctx context.Context) {
	for {
		select {
		case <-c.Durability.requested:
		case <-ctx.Done():
			return
		}
		err := c.Probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !c.NC.IsConnected() {
			continue // the client reconnects, and calls fail at once until then
		}
		c.Durability.RecordProbe(err)
		if err != nil {
			c.Log.Warn("queue cannot store messages", "err", err, "hint", core.HintOf(err))
			c.probeUntilHealthy(ctx, err)
		}
		if retry.Sleep(ctx, probePause) != nil {
			return
		}
	}
}

// probeUntilHealthy returns when the streams can store again, or with ctx. err is the outcome of the last probe.
func (c *Conn) probeUntilHealthy(ctx context.Context, err error) {
	rest, restartRest := minReprobe, maxReprobe
	for {
		if retry.Sleep(ctx, retry.Jitter(rest)) != nil {
			return
		}
		restarted := c.restartServer(ctx)
		if errors.Is(err, errOtherSettings) {
			c.restoreStreams(ctx)
		}
		err = c.Probe(ctx)
		if ctx.Err() != nil {
			return
		}
		c.Durability.RecordProbe(err)
		if err == nil {
			c.Log.Info("queue can store messages again")
			return
		}
		if rest = min(2*rest, maxReprobe); restarted {
			rest, restartRest = restartRest, min(2*restartRest, maxRestartPause)
		}
	}
}

// restartServer restarts an in-process server that reports a storage error, and reports whether it did.
func (c *Conn) restartServer(ctx context.Context) bool {
	if c.cfg.Server == nil {
		return false
	}
	why := c.cfg.Server.StorageError()
	if why == nil {
		return false
	}
	if err := c.cfg.Server.Restart(ctx); err != nil {
		c.Log.Debug("embedded queue not restarted", "err", err)
		return false
	}
	c.cfg.OnRestart()
	c.Log.Warn("embedded queue restarted", "reason", why)
	c.AwaitConnected(ctx, time.Now().Add(CallTimeout), nil)
	return true
}

// restoreStreams sets the configuration of the streams again: a process of another version may have changed it.
func (c *Conn) restoreStreams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	for _, cfg := range c.cfg.Streams {
		if _, err := c.createStream(ctx, cfg); err != nil {
			c.Log.Warn("streams not restored", "err", err)
			return
		}
	}
	c.Log.Info("streams restored")
}

// Probe stores a small message in each stream and returns why a stream could not store it: a write to one stream says
// nothing about another.
func (c *Conn) Probe(ctx context.Context) error {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	select {
	case earlier := <-c.Durability.denied:
		c.Log.Debug("an earlier probe was denied", "err", earlier)
	default:
	}
	group, probing := errgroup.WithContext(ctx)
	unbound, silent := make(chan error, len(c.cfg.Streams)), make(chan string, len(c.cfg.Streams))
	for _, cfg := range c.cfg.Streams {
		group.Go(func() error {
			err := c.probeStream(probing, cfg.Name)
			if err != nil {
				silent <- cfg.Name
			}
			if errors.Is(err, errOtherSettings) {
				unbound <- err // an error of another stream, which cannot store, has priority
				return nil
			}
			return err
		})
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watchProbe(probing, fail)
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
	if close(silent); errors.Is(err, context.DeadlineExceeded) && c.cfg.Server == nil {
		if frozen := c.frozen(outer, silent); frozen != nil {
			return frozen
		}
	}
	return ProbeFailure(err)
}

// frozen returns an error that names those of the streams that the server describes, although it did not answer a write to them; nil if it
// describes one of them not. After an I/O error nats-server answers no write to a stream, and stores nothing in it, until it is restarted.
func (c *Conn) frozen(ctx context.Context, silent <-chan string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var streams, servers []string
	for name := range silent {
		stream, err := c.JS.Stream(ctx, name)
		if err != nil {
			return nil //nolint:nilerr // the server does not answer at all, which the caller reports
		}
		streams, servers = append(streams, name), append(servers, c.NC.ConnectedServerName())
		if info := stream.CachedInfo(); info.Cluster != nil && info.Cluster.Leader != "" {
			servers[len(servers)-1] = info.Cluster.Leader
		}
	}
	slices.Sort(streams)
	slices.Sort(servers)
	server := strings.Join(slices.Compact(servers), ", ")
	return &core.Error{
		Code: core.CodeUnavailable, RetryAfter: retryWhenDown, Err: context.DeadlineExceeded,
		Message: "nats-server " + server + " answers, but did not store a message within " + CallTimeout.String() + " in " + strings.Join(streams, ", "),
		Hint: "check its disk and its log; after an I/O error it stores nothing in such a stream until it is restarted, so restart nats-server " + server +
			"; a disk that was only slow continues by itself",
	}
}

// ProbeFailure returns the error of a probe that failed with err.
func ProbeFailure(err error) error {
	if err == nil {
		return nil
	}
	e := &core.Error{
		Code: core.CodeUnavailable, Message: "the queue cannot store messages now", RetryAfter: retryWhenDown, Err: err,
		Hint: "check the space on its disk; it continues by itself",
	}
	if known, ok := errors.AsType[*core.Error](err); ok {
		e.Message, e.Err = e.Message+": "+known.Message, known.Err
	}
	switch {
	case errors.Is(err, errOtherSettings):
		e.Message = "the queue cannot be checked: a stream does not take " + ProbePrefix + "*"
		e.Hint = "another version of tutti may have set it up; it is set up again by itself"
		e.Err = fmt.Errorf("%w: %w", errProbeUndelivered, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		e.Message = "the queue cannot be checked: its credentials do not allow to publish to " + ProbePrefix + ">"
		e.Hint = "allow it on the server"
		e.Err = fmt.Errorf("%w: %w", errProbeUndelivered, err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "the queue did not answer a write within " + CallTimeout.String()
		e.Hint = "check nats-server and its log; it continues by itself"
	}
	return e
}

// watchProbe ends a probe that cannot get an answer, until ctx ends.
func (c *Conn) watchProbe(ctx context.Context, fail context.CancelCauseFunc) {
	tick := time.NewTicker(storageErrorPoll)
	defer tick.Stop()
	for {
		if c.cfg.Server != nil {
			if err := c.cfg.Server.StorageError(); err != nil {
				fail(err)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case err := <-c.Durability.denied:
			fail(err)
			return
		case <-tick.C:
		}
	}
}

func (c *Conn) probeStream(ctx context.Context, stream string) error {
	m := replacing(&nats.Msg{Subject: ProbePrefix + stream})
	opts := []jetstream.PublishOpt{
		jetstream.WithExpectStream(stream), jetstream.WithRetryAttempts(publishRetries), jetstream.WithRetryWait(publishRetryWait),
	}
	_, err := c.JS.PublishMsg(ctx, m, opts...)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fmt.Errorf("%w: %w", errOtherSettings, err)
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	if ok && api.ErrorCode == errCodeStoreFailed {
		return nil // the stream is full: it answers, and stores again when messages have been processed
	}
	if ok && api.ErrorCode == errCodeRollupFailed {
		return fmt.Errorf("%w: %w", errOtherSettings, err)
	}
	return err
}
