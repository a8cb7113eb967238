package http

import (
	"context"
	nethttp "net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

const (
	// defaultBodyBudget is how many bytes of large bodies are in hand at once. What becomes of a body takes several times
	// its size.
	defaultBodyBudget = 64 << 20
	// smallBody is the size up to which a body is not counted: large ones must not keep small ones waiting.
	smallBody = 64 << 10
	// bodyPatience is how long a request waits until the large bodies in hand leave room for its own.
	bodyPatience = 5 * time.Second
)

// bodyBudget bounds the memory of large bodies.
type bodyBudget struct {
	bytes *semaphore.Weighted
	most  int64
}

// newBodyBudget makes a budget in which the largest body that is taken at all has room.
func newBodyBudget(budget, largest int64) bodyBudget {
	if budget == 0 {
		budget = defaultBodyBudget
	}
	most := max(budget, largest)
	return bodyBudget{bytes: semaphore.NewWeighted(most), most: most}
}

// take makes room for the body of a request until the request ends. CodeOverloaded when there is none soon.
func (b bodyBudget) take(r *nethttp.Request, largest int64) error {
	size := r.ContentLength
	if size < 0 { // it is not said beforehand
		size = largest
	}
	if size <= smallBody {
		return nil
	}
	size = min(size, b.most)
	ctx, cancel := context.WithTimeout(r.Context(), bodyPatience)
	defer cancel()
	if err := b.bytes.Acquire(ctx, size); err != nil {
		return &core.Error{
			Code: core.CodeOverloaded, Message: "too many large bodies are being worked on", Hint: "send it again a little later", Err: err,
		}
	}
	ex := exchangeOf(r.Context())
	ex.atEnd = append(ex.atEnd, func() { b.bytes.Release(size) })
	return nil
}
