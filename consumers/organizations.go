package consumers

import (
	"context"
	"sync"
	"time"
)

// organizationList shares one answer of an upstream's list of organizations among those who ask at the same time: a study that
// has vanished makes each of its records ask. An answer counts only for who asked before it was asked for.
type organizationList struct {
	mu        sync.Mutex // held also while the upstream is asked
	requested time.Time
	answer    []string
}

// get returns a list that was asked for after this call began.
func (l *organizationList) get(ctx context.Context, upstream Upstream) ([]string, error) {
	began := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requested.After(began) {
		return l.answer, nil
	}
	asked := time.Now()
	answer, err := upstream.Organizations(ctx)
	if err != nil {
		return nil, err
	}
	l.requested, l.answer = asked, answer
	return answer, nil
}
