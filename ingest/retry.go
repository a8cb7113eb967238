package ingest

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
)

const (
	// retryPage is how many letters are listed at once: each comes with as much of its document as is kept.
	retryPage = 100
	// retryChunk is how many letters are retried before the next ones are looked at.
	retryChunk = 512
	// retryParallel is how many letters are read or retried at once where there is no call for many.
	retryParallel = 32
)

// Retry asks again for what one letter is about. The Request of a record is published again: the record is fetched anew,
// the stored copy is never written, and the letter stays until a success clears it. For a page or a run its organization
// or repository is run, and the letter goes. A message is read again, as it would be now; when it is understood, it is
// published and the letter goes. It returns the letter. Errors: CodeNotFound when there is none, CodeConflict with a hint
// when it cannot be retried, CodeOverloaded or CodeUnavailable from the queue, CodeUnsupported without Letters.
func (s *Service) Retry(ctx context.Context, id, requestID string) (core.DeadLetter, error) {
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

// RetryAll retries every letter of a repository and of a reason, "" for any, that is there when it begins, and returns how
// many were retried and how many cannot be. An error says that the queue stopped taking them; those that were retried
// until then stay so.
func (s *Service) RetryAll(
	ctx context.Context, repository, reason, requestID string,
) (retried, refused int, err error) {
	if s.cfg.DeadLetters == nil {
		return 0, 0, errNoDeadLetters()
	}
	requestID = orNewID(requestID)
	letters, err := s.allDeadLetters(ctx, repository, reason)
	if err != nil {
		return 0, 0, err
	}
	for len(letters) > 0 {
		n := min(retryChunk, len(letters))
		did, cannot, err := s.retryChunk(ctx, letters[:n], requestID)
		retried, refused, letters = retried+did, refused+cannot, letters[n:]
		if err != nil {
			return retried, refused, err
		}
	}
	return retried, refused, nil
}

// allDeadLetters lists letters without their documents.
func (s *Service) allDeadLetters(ctx context.Context, repository, reason string) ([]core.DeadLetter, error) {
	var all []core.DeadLetter
	for cursor := ""; ; {
		letters, next, err := s.cfg.DeadLetters.List(ctx, repository, reason, retryPage, cursor)
		if err != nil {
			return nil, fmt.Errorf("listing dead letters: %w", err)
		}
		for _, l := range letters {
			l.Document = nil
			all = append(all, l)
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}

// retryChunk retries some letters: those of records all at once, the others several at a time.
func (s *Service) retryChunk(
	ctx context.Context, letters []core.DeadLetter, requestID string,
) (retried, refused int, err error) {
	records := newRequestSet(core.CauseREST, requestID)
	var others []core.DeadLetter
	for _, l := range letters {
		if l.Source != "" || !isOfRecord(l) {
			others = append(others, l)
			continue
		}
		r, err := s.recordRequest(l)
		if err != nil {
			refused++
			continue
		}
		records.put(r)
	}
	retried, err = s.submitRecords(ctx, records)
	if err != nil {
		return retried, refused, err
	}
	did, cannot, err := s.retryEach(ctx, others, requestID)
	return retried + did, refused + cannot, err
}

// retryEach retries letters one by one, several at a time.
func (s *Service) retryEach(
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
			case core.CodeConflict:
				refused++
			case core.CodeNotFound:
				// It went while the others were retried.
			default:
				return err
			}
			return nil
		})
	}
	err = g.Wait()
	return retried, refused, err
}

// planRetry returns what the retry of a letter publishes; CodeConflict when it cannot be retried.
func (s *Service) planRetry(l core.DeadLetter, requestID string) (*requestSet, error) {
	in := newRequestSet(core.CauseREST, requestID)
	switch {
	case l.Source != "":
		return in, s.planMessage(in, l)
	case isOfRecord(l):
		r, err := s.recordRequest(l)
		if err != nil {
			return nil, err
		}
		in.put(r)
		return in, nil
	case l.Request != nil && l.Request.Scope != core.ScopeRecords:
		return in, s.planRun(in, l)
	default:
		return nil, notRetryable("the letter names neither a record nor a run",
			"mend the record in its repository, then index its organization")
	}
}

// isOfRecord reports whether a letter is about one record. The letters of pages and runs name none.
func isOfRecord(l core.DeadLetter) bool {
	return l.RecordID != "" || l.Request != nil && l.Request.Scope == core.ScopeRecord
}

// recordRequest returns the Request that asks for a letter's record again.
func (s *Service) recordRequest(l core.DeadLetter) (core.Request, error) {
	if err := s.stillConfigured(l.Repository); err != nil {
		return core.Request{}, err
	}
	if l.Reason == core.ReasonInvalidID {
		return core.Request{}, notRetryable("the record cannot be asked for by its id",
			"give the record another id in its repository, which a run brings along, and discard the letter")
	}
	r := core.Request{
		Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: l.Repository, Organization: l.Organization,
		RecordID: l.RecordID, Cause: core.CauseREST,
	}
	if l.Request != nil && l.Request.Scope == core.ScopeRecord {
		r.Kind, r.Organization, r.RecordID = l.Request.Kind, l.Request.Organization, l.Request.RecordID
		if r.Kind == core.KindRemove {
			r.AsOf = l.Request.AsOf
		}
	}
	if err := r.Validate(); err != nil {
		return core.Request{}, notRetryable("the record cannot be asked for: "+core.MessageOf(err),
			"give the record another id in its repository, or discard the letter")
	}
	return r, nil
}

func (s *Service) planRun(in *requestSet, l core.DeadLetter) error {
	if err := s.stillConfigured(l.Repository); err != nil {
		return err
	}
	e := Event{Organization: l.Request.Organization}
	if e.Organization != "" {
		if err := validRun(core.ScopeOrganization, e.Organization); err != nil {
			return notRetryable("the organization cannot be run: "+core.MessageOf(err), "run its repository instead")
		}
	}
	in.add(e, l.Repository, 0)
	return nil
}

// planMessage reads a kept message as it would be read now.
func (s *Service) planMessage(in *requestSet, l core.DeadLetter) error {
	a := eventTargets{requests: l.Source != sourceWebhook}
	switch {
	case l.Truncated:
		return notRetryable("only a part of the message is kept", "have it sent again, or index what it is about")
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
	e, rejection := ParseEvent(l.Document)
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
		in.add(s.requestedScope(e, repo.Code), repo.Code, asOf)
	}
	return nil
}

func (s *Service) stillConfigured(repository string) error {
	if _, ok := s.repositories[repository]; ok {
		return nil
	}
	return notRetryable(fmt.Sprintf("repository %q is not configured", repository),
		"configure the repository again, or discard the letter")
}

func notUnderstood(rejection *Rejection) error {
	return notRetryable("still not understood: "+rejection.Message, "have it sent again as it should be, or discard the letter")
}

func notRetryable(message, hint string) error {
	return &core.Error{Code: core.CodeConflict, Message: message, Hint: hint}
}

// discard removes a letter that no success of a record will clear. What goes wrong leaves a letter that can be retried
// once more.
func (s *Service) discard(ctx context.Context, l core.DeadLetter) {
	if l.Source == "" && isOfRecord(l) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := s.cfg.DeadLetters.Delete(ctx, l.ID)
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		s.cfg.Logger.WarnContext(ctx, "discarding a dead letter that was retried", "repository", l.Repository, "err", err)
	}
}
