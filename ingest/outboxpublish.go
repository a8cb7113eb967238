package ingest

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// relayResult is the outcome of one relay.
type relayResult struct {
	// errs has one error for each change; nil when all are sent.
	errs []error
	// sent counts the changes that are finished, first is the first error of the others.
	sent  int
	first error

	mu sync.Mutex
	// stopErr is why the remaining changes of the relay are not tried: the queue accepts none now, and each call would
	// wait for its timeout.
	stopErr error
}

// publish sends changes concurrently. The order of changes of one record does not matter: each causes a new fetch of
// the record.
func (r *Relay) publish(ctx context.Context, changes []datamodel.Change) *relayResult {
	round := &relayResult{}
	errs := make([]error, len(changes))
	var g errgroup.Group
	g.SetLimit(r.cfg.Concurrency)
	for i, c := range changes {
		g.Go(func() error {
			errs[i] = round.try(func() error { return r.send(ctx, c) })
			return nil
		})
	}
	_ = g.Wait() // each change has its own error
	for _, err := range errs {
		switch {
		case err == nil:
			round.sent++
		case round.first == nil:
			round.first, round.errs = err, errs
		}
	}
	return round
}

// try calls send unless an earlier error stopped the relay.
func (r *relayResult) try(send func() error) error {
	r.mu.Lock()
	halted := r.stopErr
	r.mu.Unlock()
	if halted != nil {
		return halted
	}
	err := send()
	if core.Retryable(err) {
		r.mu.Lock()
		r.stopErr = err
		r.mu.Unlock()
	}
	return err
}

// send publishes the Request of one change. A change that can never be published becomes a dead letter, so that it
// does not block the others.
func (r *Relay) send(ctx context.Context, c datamodel.Change) error {
	s := r.service
	req := core.Request{
		ID: c.ID, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: r.repository, Organization: c.Study,
		RecordID: c.AnalysisID, Cause: core.CauseOutbox, ReceivedAt: c.At.UTC(), Traceparent: c.Traceparent,
	}
	err := s.publish(ctx, req)
	switch core.CodeOf(err) {
	case "":
		s.receive(r.repository, req.Cause, req.Kind)
		s.cfg.Metrics.relay(resultPublished)
		return nil
	case core.CodeInvalid, core.CodeTooLarge:
		if err = r.deadLetter(ctx, req, err); err == nil {
			s.cfg.Metrics.relay(resultDeadLetter)
			return nil
		}
	default:
	}
	s.cfg.Metrics.relay(resultFailed)
	return err
}

// deadLetter stores the change of a Request as a dead letter.
func (r *Relay) deadLetter(ctx context.Context, req core.Request, cause error) error {
	letter := core.DeadLetter{
		Repository: req.Repository, Organization: req.Organization, RecordID: req.RecordID,
		Reason: core.ReasonInvalidID, Hint: core.MessageOf(cause) + "; fix the record's id in its repository",
		Attempts: 1, Request: &req,
	}
	if err := r.service.cfg.DeadLetters.Put(ctx, letter); err != nil {
		return fmt.Errorf("storing a change that cannot be published: %w", err)
	}
	r.cfg.Logger.WarnContext(ctx, "a change became a dead letter", "repository", req.Repository, "request_id", req.ID,
		"reason", letter.Reason, "err", cause)
	return nil
}
