package download

import (
	"slices"
	"sync"

	"tutti/internal/core"
)

// limiter bounds the downloads at once.
type limiter struct {
	max int

	mu    sync.Mutex
	inUse int
	// byAccount counts those of each account.
	byAccount map[string]int64
}

// acquire takes a place until release is called. CodeOverloaded when the caller may have no further one, or all are taken; a known
// caller that has none may always have one.
func (p *limiter) acquire(c core.Caller) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	accounts := c.Accounts(int64(p.max))
	full := p.inUse >= p.max && (!c.Known || p.byAccount[c.ID] > 0)
	if full || slices.ContainsFunc(accounts, func(a core.Account) bool { return p.byAccount[a.ID] >= a.Max }) {
		return nil, &core.Error{
			Code: core.CodeOverloaded, Message: "too many downloads are made at once", Hint: "try again in a while", RetryAfter: retryAfter,
		}
	}
	p.add(accounts, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(accounts, -1)
	}, nil
}

// add counts n downloads. The places are locked.
func (p *limiter) add(accounts []core.Account, n int) {
	p.inUse += n
	for _, a := range accounts {
		if p.byAccount[a.ID] += int64(n); p.byAccount[a.ID] == 0 {
			delete(p.byAccount, a.ID)
		}
	}
}
