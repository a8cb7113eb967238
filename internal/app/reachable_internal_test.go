package app

import (
	"context"
	"testing"

	"tutti/consumers"
	"tutti/internal/core"
)

// upstreamOf answers every call with an error.
type upstreamOf struct {
	consumers.Upstream
	err error
}

func (u *upstreamOf) Organizations(context.Context) ([]string, error) { return nil, u.err }

func (u *upstreamOf) Page(context.Context, string, int, int, func(core.Record) error) (core.PageInfo, error) {
	return core.PageInfo{}, u.err
}

func (u *upstreamOf) Record(context.Context, string, string) (core.Record, error) {
	return core.Record{}, u.err
}

// TestReachable: a call that the repository did not answer, or refused, is the reason until the next call is answered.
func TestReachable(t *testing.T) {
	t.Parallel()
	refused := &core.Error{
		Code: core.CodeUpstream, Message: "the upstream answered with status 401", Hint: "check the repository's token, or its username and password",
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"refused":     {refused, "the upstream answered with status 401; check the repository's token, or its username and password"},
		"unreachable": {core.NewError(core.CodeUnavailable, "the upstream could not be reached"), "the upstream could not be reached"},
		"overloaded":  {core.NewError(core.CodeOverloaded, "the upstream answered with status 429"), "the upstream answered with status 429"},
		"absent":      {core.NewError(core.CodeAbsent, "there is no such record"), ""},
		"answered":    {nil, ""},
	} {
		for call, begin := range map[string]func(ctx context.Context, u *watchedUpstream){
			"organizations": func(ctx context.Context, u *watchedUpstream) { _, _ = u.Organizations(ctx) },
			"page": func(ctx context.Context, u *watchedUpstream) {
				_, _ = u.Page(ctx, "O", 0, 1, func(core.Record) error { return nil })
			},
			"record": func(ctx context.Context, u *watchedUpstream) { _, _ = u.Record(ctx, "O", "id") },
		} {
			t.Run(name+", "+call, func(t *testing.T) {
				t.Parallel()
				inner := &upstreamOf{err: tt.err}
				u := &watchedUpstream{Upstream: inner}
				begin(t.Context(), u)
				if got := u.failureReason(); got != tt.want {
					t.Errorf("the reason is %q, want %q", got, tt.want)
				}
				ended, end := context.WithCancel(t.Context())
				end()
				inner.err = nil
				if begin(ended, u); u.failureReason() != tt.want {
					t.Errorf("a call that its caller gave up made the reason %q", u.failureReason())
				}
				if begin(t.Context(), u); u.failureReason() != "" {
					t.Errorf("after an answer the reason is %q", u.failureReason())
				}
			})
		}
	}
}
