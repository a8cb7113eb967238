package keylock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/base/keylock"
)

// TestLock: up to Holders callers hold the lock of a key at once, and other keys do not wait.
func TestLock(t *testing.T) {
	for holders, bound := range map[int]int{0: 1, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			locks := keylock.Locks{Holders: holders}
			other, err := locks.Lock(t.Context(), "other")
			if err != nil {
				t.Fatal(err)
			}
			defer other()
			var mu sync.Mutex
			held, most := 0, 0
			var all sync.WaitGroup
			for range 9 {
				all.Go(func() {
					unlock, err := locks.Lock(t.Context(), "a")
					if err != nil {
						t.Error(err)
						return
					}
					defer unlock()
					mu.Lock()
					held++
					most = max(most, held)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					held--
					mu.Unlock()
				})
			}
			began := time.Now()
			synctest.Wait()
			if n := locks.Len(); n != 2 {
				t.Errorf("%d holders: %d keys while locked", holders, n)
			}
			all.Wait()
			if took := time.Since(began); most != bound || took != time.Duration(9/bound)*time.Second {
				t.Errorf("%d holders: %d at once, in %s", holders, most, took)
			}
			if n := locks.Len(); n != 1 {
				t.Errorf("%d holders: %d keys afterwards", holders, n)
			}
		})
	}
}

// TestLockCanceled: who stops waiting leaves the lock as it was.
func TestLockCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks keylock.Locks
		unlock, err := locks.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := locks.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting ends with %v", err)
		}
		if n := locks.Len(); n != 1 {
			t.Errorf("%d keys while one is held", n)
		}
		unlock()
		if n := locks.Len(); n != 0 {
			t.Errorf("%d keys afterwards", n)
		}
		if unlock, err = locks.Lock(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		unlock()
	})
}
