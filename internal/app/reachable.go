package app

import (
	"context"
	"sync/atomic"

	"tutti/consumers"
	"tutti/internal/core"
)

// watchedUpstream notes how the last call to a repository ended.
type watchedUpstream struct {
	consumers.Upstream
	failure atomic.Pointer[string]
}

// reason says why the last call failed, safe to display; empty when it was answered.
func (u *watchedUpstream) reason() string {
	if failure := u.failure.Load(); failure != nil {
		return *failure
	}
	return ""
}

// note notes the end of a call, unless its caller gave it up.
func (u *watchedUpstream) note(ctx context.Context, err error) {
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
	u.note(ctx, err)
	return organizations, err
}

// Page implements consumers.Upstream. An error of each is not the repository's.
func (u *watchedUpstream) Page(
	ctx context.Context, organization string, offset, limit int, each func(core.Record) error,
) (core.PageInfo, error) {
	var own error
	info, err := u.Upstream.Page(ctx, organization, offset, limit, func(r core.Record) error {
		own = each(r)
		return own
	})
	if own == nil {
		u.note(ctx, err)
	}
	return info, err
}

// Record implements consumers.Upstream.
func (u *watchedUpstream) Record(ctx context.Context, organization, id string) (core.Record, error) {
	record, err := u.Upstream.Record(ctx, organization, id)
	u.note(ctx, err)
	return record, err
}
