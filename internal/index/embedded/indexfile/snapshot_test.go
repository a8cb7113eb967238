package indexfile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"tutti/internal/core"
	"tutti/internal/index/embedded/evaluate"
	"tutti/internal/index/embedded/indexfile"
)

// TestAwaitCommit waits until searches see what readers of the file already see, and no longer than its context.
func TestAwaitCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir())
		a := create(t, f)
		put(t, f, a, "S1", "x")
		if err := a.AwaitCommit(t.Context()); err != nil {
			t.Errorf("without a transaction in progress it returned %v", err)
		}
		synctest.Wait()
		settle, err := indexfile.Unsettled(a)
		if err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.AwaitCommit(brief); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("cancelled, it returned %v", err)
		}
		done := make(chan error)
		go func() { done <- a.AwaitCommit(t.Context()) }()
		select {
		case err := <-done:
			t.Errorf("it ended before the transaction was shown, with %v", err)
			return
		case <-time.After(time.Minute):
		}
		settle()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// countingContext is a context that ends after a number of calls of Err.
type countingContext struct {
	context.Context //nolint:containedctx // it is a context
	asked           int
}

// Err counts its calls.
func (i *countingContext) Err() error {
	if i.asked++; i.asked > 1_000_000 {
		return context.Canceled
	}
	return i.Context.Err()
}

// TestViewWithoutSnapshot checks that a search whose snapshot never becomes visible ends with its context, and waits between
// attempts.
func TestViewWithoutSnapshot(t *testing.T) {
	f := open(t, t.TempDir())
	a := create(t, f)
	put(t, f, a, "S1", "x")
	if err := indexfile.Database(f).Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("aliases")).Bucket([]byte("a")).Bucket([]byte("rows")).SetSequence(1_000_000)
	}); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ctx := &countingContext{Context: deadline}
	err := a.ViewParts(ctx, func([]evaluate.Part, indexfile.Rows) error { return nil })
	if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "searching the index was cancelled" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the search returned %v", err)
	}
	if ctx.asked > 300 {
		t.Errorf("%d attempts in 200 ms", ctx.asked)
	}
}
