package download

import (
	"slices"
	"sync"

	"tutti/internal/core"
)

// limiter limits concurrent downloads.
type limiter struct {
	max int

	mu    sync.Mutex
	inUse int
	// byAccount counts the downloads of each account.
	byAccount map[string]int64
}

// acquire reserves a download until release is called. CodeOverloaded if the caller's limit or the total is reached; a known
// caller without a download may always start one.
func (p *limiter) acquire(c core.Caller) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	accounts := c.Accounts(int64(p.max))
	full := p.inUse >= p.max && (!c.Known || p.byAccount[c.ID] > 0)
	if full || slices.ContainsFunc(accounts, func(a core.Account) bool { return p.byAccount[a.ID] >= a.Max }) {
		return nil, &core.Error{
			Code: core.CodeOverloaded, Message: "too many concurrent downloads", Hint: "try again later", RetryAfter: retryAfter,
		}
	}
	p.add(accounts, 1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.add(accounts, -1)
	}, nil
}

// add adds n downloads. The caller holds the lock.
func (p *limiter) add(accounts []core.Account, n int) {
	p.inUse += n
	for _, a := range accounts {
		if p.byAccount[a.ID] += int64(n); p.byAccount[a.ID] == 0 {
			delete(p.byAccount, a.ID)
		}
	}
}
