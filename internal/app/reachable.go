package app

import (
	"context"
	"sync/atomic"
	"time"

	"tutti/consumers"
	"tutti/internal/core"
)

// watchedUpstream records how the last call to a repository ended.
type watchedUpstream struct {
	consumers.Upstream
	failure atomic.Pointer[string]
}

// failureReason returns why the last call failed, safe to display; empty when it was answered.
func (u *watchedUpstream) failureReason() string {
	if failure := u.failure.Load(); failure != nil {
		return *failure
	}
	return ""
}

// failure returns why the last call to a repository failed, "" when it was answered.
func (x *indexer) failure(repository string) string {
	if u := x.upstreams[repository]; u != nil {
		return u.failureReason()
	}
	return ""
}

// record records the outcome of a call, unless its caller canceled it.
func (u *watchedUpstream) record(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case core.Retryable(err), core.CodeOf(err) == core.CodeUpstream:
		reason := core.DisplayOf(err)
		u.failure.Store(&reason)
	default:
		u.failure.Store(nil)
	}
}

// Organizations implements consumers.Upstream.
func (u *watchedUpstream) Organizations(ctx context.Context) ([]string, error) {
	organizations, err := u.Upstream.Organizations(ctx)
	u.record(ctx, err)
	return organizations, err
}

// Page implements consumers.Upstream. It does not record an error that each returned.
func (u *watchedUpstream) Page(
	ctx context.Context, organization string, offset, limit int, each func(core.Record) error,
) (core.PageInfo, error) {
	var own error
	info, err := u.Upstream.Page(ctx, organization, offset, limit, func(r core.Record) error {
		own = each(r)
		return own
	})
	if own == nil {
		u.record(ctx, err)
	}
	return info, err
}

// Record implements consumers.Upstream.
func (u *watchedUpstream) Record(ctx context.Context, organization, id string) (core.Record, error) {
	record, err := u.Upstream.Record(ctx, organization, id)
	u.record(ctx, err)
	return record, err
}

// watchedTypes records on of how a call for what the repository declares failed. It succeeds also without a call.
type watchedTypes struct {
	consumers.Types
	of *watchedUpstream
}

// Read implements consumers.Types.
func (t watchedTypes) Read(ctx context.Context, jobID string, queuedAt time.Time) error {
	err := t.Types.Read(ctx, jobID, queuedAt)
	if err != nil {
		t.of.record(ctx, err)
	}
	return err
}

// watchedHolders records on of how a call for the holder of a part failed.
type watchedHolders struct {
	consumers.Holders
	of *watchedUpstream
}

// Holder implements consumers.Holders.
func (h watchedHolders) Holder(ctx context.Context, organization string, part core.Part) (id string, isPart bool, err error) {
	if id, isPart, err = h.Holders.Holder(ctx, organization, part); err != nil {
		h.of.record(ctx, err)
	}
	return id, isPart, err
}
