package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tutti/http/system"
	"tutti/internal/core"
)

type loader []string

func (l loader) Loading() []string { return l }

func TestStillLoading(t *testing.T) {
	for name, c := range map[string]struct {
		index any
		want  bool
	}{
		"an index that cannot be searched yet": {loader{"analyses"}, true},
		"one that can":                         {loader{}, false},
		"one that does not load":               {struct{}{}, false},
	} {
		if got := stillLoading(c.index); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestComponentState: a failed check is a component that is down, but for the outbox, which is degraded.
func TestComponentState(t *testing.T) {
	failed := errors.New("failed")
	for component, want := range map[string]system.ComponentState{
		"queue": "down", "index": "down", "store": "down", "kafka": "down", "outbox": "degraded",
	} {
		if got := componentState(component, failed); got != want {
			t.Errorf("%s is %s, want %s", component, got, want)
		}
		if got := componentState(component, nil); got != "up" {
			t.Errorf("%s without an error is %s", component, got)
		}
	}
}

// TestCachedCheck: a check runs at most once every checkTTL, however many callers there are, and again after a failure.
func TestCachedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		checks, outcome := 0, full
		p := &cachedCheck{life: t.Context(), check: func(context.Context) error {
			checks++
			time.Sleep(time.Second)
			return outcome
		}}
		for range 3 {
			go func() {
				if err := p.result(t.Context()); !errors.Is(err, full) {
					t.Errorf("got %v", err)
				}
			}()
		}
		time.Sleep(1500 * time.Millisecond)
		if err := p.result(t.Context()); !errors.Is(err, full) || checks != 1 {
			t.Errorf("%v after %d checks", err, checks)
		}
		outcome = nil
		time.Sleep(checkTTL)
		if err := p.result(t.Context()); err != nil || checks != 2 {
			t.Errorf("%v after %d checks", err, checks)
		}
		p.wait()
	})
}

// TestCachedCheckThatHangs: a caller waits no longer than its context, and the check ends with the process.
func TestCachedCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, stop := context.WithCancel(t.Context())
		p := &cachedCheck{life: life, check: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.result(ctx); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("got %v", err)
		}
		stop()
		p.wait()
	})
}

// TestCachedCheckThatIsSlow: while a check takes longer than its caller waits, the success before it counts, until the check takes
// longer than checkTimeout.
func TestCachedCheckThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := time.Duration(0)
		p := &cachedCheck{life: t.Context(), check: func(context.Context) error {
			time.Sleep(takes)
			return nil
		}}
		result := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), healthTimeout)
			defer cancel()
			return p.result(ctx)
		}
		if err := result(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkTTL)
		takes = 2 * checkTimeout
		for range 2 {
			if err := result(); err != nil {
				t.Errorf("a slow check: %v", err)
			}
		}
		if err := result(); core.MessageOf(err) != "did not answer within 2s" {
			t.Errorf("a check that hangs: %v", err)
		}
		p.wait()
	})
}
