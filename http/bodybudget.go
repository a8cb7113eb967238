package http

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"tutti/internal/core"
)

const (
	// smallBody is the size up to which a body takes no memory budget, so that large bodies do not delay small ones.
	smallBody = 64 << 10
	// maxSmallBodies bounds the bytes of small bodies that are not counted.
	maxSmallBodies = 16 << 20
	// payloadCopies is about how many copies of an analysis checking and storing it makes, and payloadValue what each of its
	// values takes beside, in bytes.
	payloadCopies, payloadValue = 6, 100
	// bodyMemoryTimeout is how long a request waits for memory that other large bodies hold.
	bodyMemoryTimeout = 30 * time.Second
)

// payloadWeight estimates the memory that validating and storing an analysis takes, in bytes.
func payloadWeight(body []byte) int64 {
	values := bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("["))
	return payloadCopies*int64(len(body)) + payloadValue*int64(values)
}

// Memory bounds the bytes that requests hold at the same time.
type Memory interface {
	// Acquire blocks until n bytes are available for a caller, or ctx ends. release returns them; it may be called again.
	Acquire(ctx context.Context, c core.Caller, n int64) (release func(), err error)
}

// unbounded is the Memory of a Config that has none.
type unbounded struct{}

// Acquire implements Memory.
func (unbounded) Acquire(context.Context, core.Caller, int64) (release func(), err error) {
	return func() {}, nil
}

// acquire takes n bytes of memory until the request ends, or release is called. CodeOverloaded when they are not free soon. Small
// bodies take none of it while there are few of them.
func (h *Handler) acquire(r *http.Request, memory Memory, n int64) (release func(), err error) {
	ex := exchangeOf(r.Context())
	if n <= smallBody {
		if h.smallBodies.Add(n) <= maxSmallBodies {
			release = sync.OnceFunc(func() { h.smallBodies.Add(-n) })
			ex.atEnd = append(ex.atEnd, release)
			return release, nil
		}
		h.smallBodies.Add(-n)
	}
	ctx, cancel := context.WithTimeout(r.Context(), bodyMemoryTimeout)
	defer cancel()
	if release, err = memory.Acquire(ctx, h.limitCaller(r), n); err != nil {
		return nil, &core.Error{
			Code: core.CodeOverloaded, Message: "too many large bodies are being processed", Hint: "retry later", Err: err,
		}
	}
	ex.atEnd = append(ex.atEnd, release)
	return release, nil
}
