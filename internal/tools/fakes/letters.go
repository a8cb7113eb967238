package fakes

import (
	"context"

	"tutti/internal/core"
)

// Letters implements the ports of dead letters as Ports does its own.
type Letters struct {
	ListFn     func(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error)
	GetFn      func(id string) (core.DeadLetter, error)
	DeleteFn   func(id string) error
	RetryFn    func(id, requestID string) (core.DeadLetter, error)
	RetryAllFn func(f core.DeadLetterFilter, requestID string) (core.Job, error)
}

func newLetters(p *Ports) *Letters {
	l := &Letters{}
	l.ListFn = func(_ context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
		return matching(p, &p.DeadLetters, f.Matches), "", p.Err
	}
	l.GetFn = func(id string) (core.DeadLetter, error) {
		return one(p, matching(p, &p.DeadLetters, func(d core.DeadLetter) bool { return d.ID == id }), "no such dead letter")
	}
	l.DeleteFn = func(id string) error {
		p.Note("discard %s", id)
		_, err := l.GetFn(id)
		return err
	}
	l.RetryFn = func(id, _ string) (core.DeadLetter, error) {
		p.Note("retry %s", id)
		return l.GetFn(id)
	}
	l.RetryAllFn = func(f core.DeadLetterFilter, _ string) (core.Job, error) {
		p.Note("retry-all %s %s %s", f.Repository, f.Organization, f.Reason)
		return core.Job{ID: "job-2"}, nil
	}
	return l
}

// List implements indexing.DeadLetters.
func (l *Letters) List(ctx context.Context, f core.DeadLetterFilter) ([]core.DeadLetter, string, error) {
	return l.ListFn(ctx, f)
}

// Get implements indexing.DeadLetters.
func (l *Letters) Get(_ context.Context, id string) (core.DeadLetter, error) { return l.GetFn(id) }

// Delete implements indexing.DeadLetters.
func (l *Letters) Delete(_ context.Context, id string) error { return l.DeleteFn(id) }

// Retry implements indexing.Retries.
func (l *Letters) Retry(_ context.Context, id, requestID string) (core.DeadLetter, error) {
	return l.RetryFn(id, requestID)
}

// RetryAll implements indexing.Retries.
func (l *Letters) RetryAll(_ context.Context, f core.DeadLetterFilter, requestID string) (core.Job, error) {
	return l.RetryAllFn(f, requestID)
}
