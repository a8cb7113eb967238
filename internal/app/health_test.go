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

// TestProof holds that durable writes are tried at most every provenFor, however many ask, and that what failed is tried again.
func TestProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("full")
		writes, outcome := 0, full
		p := &proof{life: t.Context(), write: func(context.Context) error {
			writes++
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
		if err := p.result(t.Context()); !errors.Is(err, full) || writes != 1 {
			t.Errorf("%v after %d writes", err, writes)
		}
		outcome = nil
		time.Sleep(provenFor)
		if err := p.result(t.Context()); err != nil || writes != 2 {
			t.Errorf("%v after %d writes", err, writes)
		}
		p.wait()
	})
}

// TestProofThatHangs holds that a caller waits no longer than it wants, and that the write ends with the process.
func TestProofThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, stop := context.WithCancel(t.Context())
		p := &proof{life: life, write: func(ctx context.Context) error {
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

// TestProofThatIsSlow holds that a write which takes longer than its caller waits takes back no success before it, until it
// takes longer than a write may.
func TestProofThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := time.Duration(0)
		p := &proof{life: t.Context(), write: func(context.Context) error {
			time.Sleep(takes)
			return nil
		}}
		result := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), healthWait)
			defer cancel()
			return p.result(ctx)
		}
		if err := result(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(provenFor)
		takes = 2 * proofTime
		for range 2 {
			if err := result(); err != nil {
				t.Errorf("a slow write: %v", err)
			}
		}
		if err := result(); core.MessageOf(err) != "did not answer within 2s" {
			t.Errorf("a write that hangs: %v", err)
		}
		p.wait()
	})
}
