package ingest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"tutti/internal/core"
)

// arrivals holds when something was last requested of each repository from outside: by a trigger, a webhook notification, a message of
// a topic or a change of the built-in repository. Its zero value is ready to use.
type arrivals struct {
	mu sync.Mutex
	// newest are the times that this process knows by the codes of repositories, stored those of them that are in their cells.
	newest, stored map[string]time.Time
}

// receive notes the time of a Request from outside that passed validation, and counts it as any other one.
func (s *sender) receive(repository string, cause core.Cause, kind core.Kind) {
	switch cause {
	case core.CauseREST, core.CauseWebhook, core.CauseKafka, core.CauseOutbox:
		s.arrivals.note(repository, s.now())
	case core.CauseReconcile, core.CauseSweep:
	}
	s.cfg.Metrics.receive(cause, kind)
}

func (a *arrivals) note(repository string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest == nil {
		a.newest, a.stored = make(map[string]time.Time), make(map[string]time.Time)
	}
	if at.After(a.newest[repository]) {
		a.newest[repository] = at
	}
}

// unstored returns the times that are not in their cells.
func (a *arrivals) unstored() map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	due := make(map[string]time.Time)
	for repository, at := range a.newest {
		if at.After(a.stored[repository]) {
			due[repository] = at
		}
	}
	return due
}

func (a *arrivals) setStored(repository string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stored[repository] = at
}

// LastNotification returns when something was last requested of a repository from outside: by a trigger, a webhook notification, a
// message of a topic or a change of the built-in repository. It is the newest time that this process has received or a process has
// stored, and zero for none.
func (s *Service) LastNotification(ctx context.Context, repository string) (time.Time, error) {
	stored, _, err := s.storedArrival(ctx, repository)
	if err != nil {
		return time.Time{}, err
	}
	s.arrivals.mu.Lock()
	defer s.arrivals.mu.Unlock()
	if own := s.arrivals.newest[repository]; own.After(stored) {
		return own, nil
	}
	return stored, nil
}

// StoreNotifications stores the times of the last notifications for all processes, and beyond the end of this one.
func (s *Service) StoreNotifications(ctx context.Context) error {
	var errs []error
	for repository, at := range s.arrivals.unstored() {
		stored, revision, err := s.storedArrival(ctx, repository)
		if err == nil && at.After(stored) {
			err = s.cells.SetCell(ctx, arrivalCell(repository), at.UTC().Format(time.RFC3339Nano), revision)
		}
		switch core.CodeOf(err) {
		case "":
			s.arrivals.setStored(repository, at)
		case core.CodeConflict: // another process has just stored its own, which the next call compares
		default:
			errs = append(errs, fmt.Errorf("storing when %s was last notified: %w", repository, err))
		}
	}
	return errors.Join(errs...)
}

// storedArrival returns the time in the cell of a repository, zero for none, and the cell's revision.
func (s *Service) storedArrival(ctx context.Context, repository string) (time.Time, uint64, error) {
	value, revision, err := s.cells.Cell(ctx, arrivalCell(repository))
	if err != nil {
		return time.Time{}, 0, err
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		at = time.Time{} // an unreadable time counts as none
	}
	return at, revision, nil
}

// arrivalCell returns the name of the cell with the time of the last notification of a repository.
func arrivalCell(repository string) string {
	return "notified." + base64.RawURLEncoding.EncodeToString([]byte(repository))
}
