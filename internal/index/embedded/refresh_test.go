package embedded_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
)

// TestRefresh waits until searches see what readers of the file already see, and no longer than its context.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := open(t, embedded.Config{})
		ensure(t, x, index.Spec{Alias: "a"})
		write(t, x, "a", put("d", 1, `{"n":1}`))
		settle := embedded.HideLastTransaction(x, "a")
		total := func() int64 { return search(t, x, "a", index.SearchRequest{Total: true}).Total }
		if n := count(t, x, "a", core.IndexScope{}); n != 1 || total() != 0 {
			t.Fatalf("%d documents are counted and %d found: this is not the moment that is meant", n, total())
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Refresh(brief, "a"); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("cancelled, it returned %v", err)
		}
		done := make(chan error)
		go func() { done <- x.Refresh(t.Context(), "a") }()
		select {
		case err := <-done:
			t.Errorf("it ended before the transaction was shown, with %v", err)
			return
		case <-time.After(time.Minute):
		}
		settle()
		if err := <-done; err != nil || total() != 1 {
			t.Errorf("%v, and %d documents are found", err, total())
		}
	})
}
