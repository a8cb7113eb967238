package fetch

import (
	"context"
	"sync"
	"time"
)

// organizationList shares one response of an upstream's list of organizations among concurrent callers: when a study
// disappears, each of its records requests the list. A response serves only callers that waited before it was requested.
type organizationList struct {
	mu        sync.Mutex // also held during the call to the upstream
	requested time.Time
	answer    []string
}

// get returns a list that was requested after this call began.
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
