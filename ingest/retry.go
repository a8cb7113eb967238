package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/ingest/event"
	"tutti/internal/core"
)

// retryParallel is how many dead letters are retried concurrently that are not of records.
const retryParallel = 32

// acceptTimeout bounds what is done for a trigger whose client may have left.
const acceptTimeout = 30 * time.Second

// retries publishes the Requests of dead letters again.
type retries struct{ *runs }

// Retry retries one dead letter. The Request of a record is published again: the record is fetched again, the stored
// copy is never written, and the dead letter stays until a success removes it. For a page or a run, its organization
// or repository is run, and the dead letter is removed. A message is decoded again with the current configuration; if
// it is accepted, it is published and the dead letter removed. Retry returns the dead letter. Errors: CodeNotFound
// when there is none, CodeConflict with a hint when it cannot be retried, CodeOverloaded or CodeUnavailable from the
// queue, CodeUnsupported without Config.DeadLetters.
func (s *retries) Retry(ctx context.Context, id, requestID string) (core.DeadLetter, error) {
	if s.cfg.DeadLetters == nil {
		return core.DeadLetter{}, errNoDeadLetters()
	}
	l, err := s.cfg.DeadLetters.Get(ctx, id)
	if err != nil {
		return core.DeadLetter{}, fmt.Errorf("reading the dead letter: %w", err)
	}
	in, err := s.planRetry(l, orNewID(requestID))
	if err != nil {
		return core.DeadLetter{}, err
	}
	if err := s.submit(ctx, in); err != nil {
		return core.DeadLetter{}, err
	}
	s.discard(ctx, l)
	return l, nil
}

// RetryAll requests that every dead letter that f selects is retried, and returns the job that does it: the one of the same filter that has
// not ended if there is one, else a new one, which retries what exists when it starts. f.Limit and f.Cursor are not used. It returns
// nil only after the queue has stored the job's Request, and goes on when ctx ends: a client that has sent its request may leave.
// Errors: CodeInvalid, CodeOverloaded or CodeUnavailable from the queue, CodeUnsupported without Config.DeadLetters.
func (s *retries) RetryAll(ctx context.Context, f core.DeadLetterFilter, requestID string) (core.Job, error) {
	if s.cfg.DeadLetters == nil {
		return core.Job{}, errNoDeadLetters()
	}
	for what, filter := range map[string]string{"repository": f.Repository, "organization": f.Organization, "reason": f.Reason} {
		if filter == "" {
			continue
		}
		if err := core.ValidID(what, filter); err != nil {
			return core.Job{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	r := core.Request{
		ID: orNewID(requestID), Kind: core.KindIndex, Scope: core.ScopeRetry, Repository: f.Repository, Organization: f.Organization,
		Reason: f.Reason, Cause: core.CauseREST, ReceivedAt: s.now(),
	}
	return s.reserve(ctx, core.Repository{}, r, cellName(r), 0)
}

// Elsewhere reports whether a repository is not configured here, but in another process.
func (s *retries) Elsewhere(ctx context.Context, repository string) (bool, error) {
	if _, here := s.repositories[repository]; here || repository == "" || s.cfg.Served == nil {
		return false, nil
	}
	return s.cfg.Served(ctx, repository)
}

// RetryPage retries some dead letters, which need no documents: those of records in one call, the others concurrently. It returns how
// many were retried and how many cannot be. After an error some may have been retried; retrying them again is safe. For those of a
// repository of another process it requests a job that retries them there, those of organization alone unless it is empty; they count as
// retried.
func (s *retries) RetryPage(
	ctx context.Context, letters []core.DeadLetter, organization, requestID string,
) (retried, refused int, err error) {
	records := newRequestSet(core.CauseREST, requestID)
	var others []core.DeadLetter
	elsewhere := map[string]bool{}
	requested := map[core.DeadLetterFilter]bool{}
	for _, l := range letters {
		other, known := elsewhere[l.Repository]
		if !known {
			if other, err = s.Elsewhere(ctx, l.Repository); err != nil {
				return 0, 0, err
			}
			elsewhere[l.Repository] = other
		}
		if filter := (core.DeadLetterFilter{Repository: l.Repository, Organization: organization, Reason: l.Reason}); other {
			if !requested[filter] {
				if _, err := s.RetryAll(ctx, filter, requestID); err != nil {
					return 0, 0, err
				}
			}
			requested[filter] = true
			retried++
			continue
		}
		if !l.OfRecord() {
			others = append(others, l)
			continue
		}
		r, err := s.recordRequest(l)
		if err != nil {
			refused++
			continue
		}
		records.put(r)
		retried++
	}
	if err = s.submitRecords(ctx, records); err != nil {
		return 0, 0, err
	}
	did, cannot, err := s.retryEach(ctx, others, requestID)
	return retried + did, refused + cannot, err
}

// retryEach retries dead letters one by one, concurrently.
func (s *retries) retryEach(
	ctx context.Context, letters []core.DeadLetter, requestID string,
) (retried, refused int, err error) {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(retryParallel)
	for _, l := range letters {
		g.Go(func() error {
			_, err := s.Retry(ctx, l.ID, requestID)
			mu.Lock()
			defer mu.Unlock()
			switch core.CodeOf(err) {
			case "":
				retried++
			case core.CodeNotFound:
				// It was removed while the others were retried.
			default:
				if core.Retryable(err) || ctx.Err() != nil {
					return err
				}
				if core.CodeOf(err) != core.CodeConflict {
					s.cfg.Logger.WarnContext(ctx, "retrying a dead letter", "dead_letter", l.ID, "err", err)
				}
				refused++
			}
			return nil
		})
	}
	err = g.Wait()
	return retried, refused, err
}

// planRetry returns the Requests of the retry of a dead letter; CodeConflict when it cannot be retried.
func (s *retries) planRetry(l core.DeadLetter, requestID string) (*requestSet, error) {
	in := newRequestSet(core.CauseREST, requestID)
	switch {
	case l.Source != "":
		return in, s.planMessage(in, l)
	case l.OfRecord():
		r, err := s.recordRequest(l)
		if err != nil {
			return nil, err
		}
		in.put(r)
		return in, nil
	case l.Request != nil && l.Request.Scope != core.ScopeRecords:
		return in, s.planRun(in, l)
	default:
		return nil, notRetryable("the dead letter names neither a record nor a run",
			"fix the record in its repository, then index its organization")
	}
}

// recordRequest returns the Request that retries the record of a dead letter.
func (s *retries) recordRequest(l core.DeadLetter) (core.Request, error) {
	if err := s.stillConfigured(l.Repository); err != nil {
		return core.Request{}, err
	}
	if l.Reason == core.ReasonInvalidID {
		return core.Request{}, notRetryable("the record cannot be requested by its id",
			"change the record's id in its repository, run its organization, and discard the dead letter")
	}
	r := l.RecordRequest()
	r.Cause = core.CauseREST
	if err := r.Validate(); err != nil {
		return core.Request{}, notRetryable("the record cannot be requested: "+core.MessageOf(err),
			"change the record's id in its repository, or discard the dead letter")
	}
	return r, nil
}

func (s *retries) planRun(in *requestSet, l core.DeadLetter) error {
	if l.Request.Scope == core.ScopeRetry {
		return notRetryable("the dead letter is of a retry of dead letters", "retry them again (tutti dead-letters retry --all), and discard the dead letter")
	}
	if r := l.Request; r.Scope == core.ScopeIDs || r.Page != nil && r.Page.IDs {
		return notRetryable("the dead letter is of a list of ids", "send the ids of job "+r.JobID+" without an outcome again, and discard the dead letter")
	}
	if err := s.stillConfigured(l.Repository); err != nil {
		return err
	}
	if p := l.Request.Page; p != nil && p.Group { // its organization is only the first of them
		return notRetryable("the dead letter is of several organizations", "run the repository again, and discard the dead letter")
	}
	e := event.Event{Organization: l.Request.Organization}
	if e.Organization != "" {
		if err := validRun(core.ScopeOrganization, e.Organization, core.RunFlags{}); err != nil {
			return notRetryable("the organization cannot be run: "+core.MessageOf(err), "run its repository instead")
		}
	}
	in.add(e, l.Repository, 0, "")
	return nil
}

// planMessage decodes a stored message with the current configuration.
func (s *retries) planMessage(in *requestSet, l core.DeadLetter) error {
	a := eventTargets{requests: l.Source != sourceWebhook}
	switch {
	case l.Truncated:
		return notRetryable("only a part of the message is stored", "have the message sent again, or index its record or organization")
	case l.Repository != "":
		if err := s.stillConfigured(l.Repository); err != nil {
			return err
		}
		a.repositories = append(a.repositories, s.repositories[l.Repository])
	default:
		for _, repo := range s.repositories {
			a.repositories = append(a.repositories, repo)
		}
	}
	e, rejection := s.events.Parse(l.Document)
	if rejection != nil {
		return notUnderstood(rejection)
	}
	repositories, rejection := s.resolve(e, a)
	if rejection != nil {
		return notUnderstood(rejection)
	}
	asOf := core.Version(0)
	if e.Remove {
		asOf = s.asOf(l.FirstAt)
	}
	for _, repo := range repositories {
		in.add(e, repo.Code, asOf, "")
	}
	return nil
}

func (s *retries) stillConfigured(repository string) error {
	if _, ok := s.repositories[repository]; ok {
		return nil
	}
	return notRetryable(fmt.Sprintf("repository %q is not configured", repository),
		"configure the repository again, or discard the dead letter")
}

func notUnderstood(rejection *event.Rejection) error {
	return notRetryable("the message still cannot be used: "+rejection.Message, "have a corrected message sent, or discard the dead letter")
}

func notRetryable(message, hint string) error {
	return &core.Error{Code: core.CodeConflict, Message: message, Hint: hint}
}

// discard removes a dead letter that no success of a record will remove. If that fails, the dead letter can be
// retried again.
func (s *retries) discard(ctx context.Context, l core.DeadLetter) {
	if l.OfRecord() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := s.cfg.DeadLetters.Delete(ctx, l.ID)
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		s.cfg.Logger.WarnContext(ctx, "discarding a dead letter that was retried", "repository", l.Repository, "err", err)
	}
}
