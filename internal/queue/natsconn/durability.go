package natsconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"tutti/internal/core"
)

// Durability tracks whether every stream can store messages.
type Durability struct {
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

func newDurability() *Durability {
	d := &Durability{requested: make(chan struct{}, 1), denied: make(chan error, 1), probed: make(chan struct{})}
	d.healthy, d.fail = context.WithCancelCause(context.Background())
	return d
}

// RequestProbe requests a probe without waiting for it.
func (d *Durability) RequestProbe() {
	select {
	case d.requested <- struct{}{}:
	default:
	}
}

// probeDenied reports whether err says that the server denied publishing a probe, and ends that probe.
func (d *Durability) probeDenied(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), ProbePrefix) {
		return false
	}
	select {
	case d.denied <- err:
	default:
	}
	return true
}

// RecordProbe records the outcome of a probe.
func (d *Durability) RecordProbe(err error) {
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
func (d *Durability) health() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.healthy
}

// ready returns the outcome of a probe that is not older than probeMaxAge, or waits for one. If ctx ends first, an
// earlier successful probe counts for CallTimeout.
func (d *Durability) ready(ctx context.Context) error {
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
		d.RequestProbe()
		select {
		case <-probed:
		case <-ctx.Done():
			if proven && time.Since(awaited) < CallTimeout {
				return nil
			}
			return &core.Error{
				Code: core.CodeUnavailable, Message: "did not answer within " + readyTimeout.String(),
				RetryAfter: retryWhenDown, Err: ctx.Err(),
			}
		}
	}
}
