package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// SmallBody is the maximum size of a body outside the memory budget, so that large bodies do not delay small ones.
	SmallBody = 64 << 10
	// maxSmallBodies is the maximum number of bytes of small bodies outside the budget.
	maxSmallBodies = 16 << 20
	// bodyMemoryTimeout is how long a request waits for memory that other large bodies hold.
	bodyMemoryTimeout = 30 * time.Second
)

// Unbounded is the memory of a Config that has none.
type Unbounded struct{}

// Acquire implements core.Memory.
func (Unbounded) Acquire(context.Context, core.Caller, int64) (release func(), err error) {
	return func() {}, nil
}

// Acquire takes n bytes of memory until the request ends, or release is called. CodeOverloaded if they are not available
// within bodyMemoryTimeout. Small bodies are outside the budget up to maxSmallBodies.
func Acquire(r *http.Request, memory core.Memory, n int64) (release func(), err error) {
	return exchangeOf(r.Context()).acquire(r, memory, n)
}

func (ex *exchange) acquire(r *http.Request, memory core.Memory, n int64) (release func(), err error) {
	small := &ex.router.smallBodies
	if n > SmallBody {
		return ex.await(r, memory, n)
	}
	if small.Add(n) > maxSmallBodies {
		small.Add(-n)
		return ex.await(r, memory, n)
	}
	release = sync.OnceFunc(func() { small.Add(-n) })
	ex.atEnd = append(ex.atEnd, release)
	return release, nil
}

// await takes n bytes of a memory until the request ends, or release is called.
func (ex *exchange) await(r *http.Request, memory core.Memory, n int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), bodyMemoryTimeout)
	defer cancel()
	if release, err = memory.Acquire(ctx, LimitCaller(r), n); err != nil {
		return nil, &core.Error{
			Code: core.CodeOverloaded, Message: "too many large bodies are being processed", Hint: "retry later", Err: err,
		}
	}
	ex.atEnd = append(ex.atEnd, release)
	return release, nil
}
