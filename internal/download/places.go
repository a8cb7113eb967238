package download

import (
	"slices"
	"sync"

	"tutti/internal/core"
)

// places bounds the downloads at once.
type places struct {
	most int

	mu    sync.Mutex
	taken int
	// held counts those of each account.
	held map[string]int64
}

// take takes a place until release is called. CodeOverloaded when the caller may have no further one, or all are taken; a known
// caller that has none may always have one.
func (p *places) take(c core.Caller) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	accounts := c.Accounts(int64(p.most))
	full := p.taken >= p.most && (!c.Known || p.held[c.ID] > 0)
	if full || slices.ContainsFunc(accounts, func(a core.Account) bool { return p.held[a.ID] >= a.Most }) {
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
func (p *places) add(accounts []core.Account, n int) {
	p.taken += n
	for _, a := range accounts {
		if p.held[a.ID] += int64(n); p.held[a.ID] == 0 {
			delete(p.held, a.ID)
		}
	}
}
