package fetch

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"tutti/internal/core"
)

// organizationList shares one response of an upstream's list of organizations among concurrent callers: when a study
// disappears, each of its records requests the list. A response serves only callers that waited before it was requested.
type organizationList struct {
	calling   *semaphore.Weighted // held during the call to the upstream
	requested time.Time
	answer    []string
}

func newOrganizationList() organizationList {
	return organizationList{calling: semaphore.NewWeighted(1)}
}

// get returns a list that was requested after this call began.
func (l *organizationList) get(ctx context.Context, upstream core.Upstream) ([]string, error) {
	began := time.Now()
	if err := l.calling.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer l.calling.Release(1)
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
