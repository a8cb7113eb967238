package schemas

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"

	"tutti/internal/core"
)

// sharedCalls are the calls that are made for several callers at once.
type sharedCalls struct {
	group singleflight.Group
	// waiters are the goroutines that wait for calls, whose callers may have left.
	waiters sync.WaitGroup
}

// share makes concurrent calls with the same key once. Each caller waits until its own ctx ends; the call continues even
// when all callers have left.
func share[V any](ctx context.Context, f *sharedCalls, key string, call func(context.Context) (V, error)) (V, error) {
	shared := f.group.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return recovered(ctx, call)
	})
	done := make(chan singleflight.Result, 1)
	f.waiters.Go(func() { done <- <-shared })
	var none V
	select {
	case r := <-done:
		if r.Err != nil {
			return none, r.Err
		}
		value, _ := r.Val.(V)
		return value, nil
	case <-ctx.Done():
		return none, givenUp(ctx.Err())
	}
}

// recovered converts a panic of call into an error: call runs on a goroutine of its own, where a panic would end the
// process.
func recovered[V any](ctx context.Context, call func(context.Context) (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = core.WrapError(core.CodeInternal, "an internal error occurred", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return call(ctx)
}

func callKey(kind string, generation uint64, k bodyKey) string {
	return kind + "/" + strconv.FormatUint(generation, 36) + "/" + strconv.Itoa(k.version) + "/" +
		strconv.FormatBool(k.unrendered) + "/" + k.name
}
