package record

import (
	"context"
	"errors"
	"slices"

	"tutti/consumers/fetch"
	"tutti/internal/core"
)

// storedOwner is the owner of a record according to the stored document.
type storedOwner struct {
	found        bool
	organization string
	// foreign is true for a document of another repository that shares the index.
	foreign bool
}

// owner returns the owner of a record according to its documents: in the index or, if it has none, in the one that a rebuild fills.
func (w *writer) owner(ctx context.Context, id string) (stored storedOwner, err error) {
	err = w.inEither(func(alias string) (bool, error) {
		stored, err = w.documents.owner(ctx, alias, id)
		return stored.found, err
	})
	return stored, err
}

// inEither calls read with the repository's alias and, unless that has found what is sought, with the one of the index that a rebuild
// fills. If there is none, that index may have just become the repository's, which is then read again.
func (c *Config) inEither(read func(alias string) (found bool, err error)) error {
	alias := c.Repository.IndexName
	found, err := read(alias)
	if err == nil && !found {
		if _, err = read(core.NextAlias(alias)); errors.Is(err, core.ErrIndexMissing) {
			_, err = read(alias)
		}
	}
	return c.Outcomes.PauseOnError(err)
}

// removeRequested removes a document on request, if it belongs to req's organization. When no document is stored, only the
// upstream knows the record's organization: a tombstone for another organization's record would keep its document out.
func (w *writer) removeRequested(ctx context.Context, req core.Request, at writeVersion) (results, error) {
	stored, err := w.owner(ctx, req.RecordID)
	switch {
	case err != nil:
		return nil, err
	case stored.found && (stored.foreign || stored.organization != req.Organization):
		return mismatch(req.RecordID), nil
	case stored.found:
		return w.documents.remove(ctx, req.RecordID, at)
	}
	rec, _, err := w.fetch(ctx, req)
	rec.Release()
	switch {
	case errors.Is(err, core.ErrOtherOrganization) || err == nil && rec.Organization != req.Organization:
		return mismatch(req.RecordID), nil
	case fetch.Retryable(err), errors.Is(err, core.ErrForeignNotFound):
		return nil, err
	case errors.Is(err, core.ErrOrganizationAbsent): // no write is in flight that the removal would have to outlast
		return only(req.RecordID, core.Result{Outcome: core.OutcomeRemoved}), nil
	}
	return w.documents.remove(ctx, req.RecordID, at)
}

// settleMoved settles req's record when the upstream does not have it under req's organization: it is absent, or belongs to
// another organization, which named holds if known. When no document is stored nothing has to change; a tombstone is written
// only for a record that is absent from an existing organization, as the id may belong to another one otherwise.
func (w *writer) settleMoved(
	ctx context.Context, req core.Request, at writeVersion, named string, said error,
) (string, results, error) {
	other, noOrganization := errors.Is(said, core.ErrOtherOrganization), errors.Is(said, core.ErrOrganizationAbsent)
	stored, err := w.owner(ctx, req.RecordID)
	switch {
	case err != nil:
		return req.Organization, nil, err
	case stored.foreign, !stored.found && other, stored.found && other && stored.organization == named:
		return req.Organization, mismatch(req.RecordID), nil
	case !stored.found && noOrganization:
		return req.Organization, only(req.RecordID, core.Result{Outcome: core.OutcomeRemoved}), nil
	case !other && !noOrganization && (!stored.found || stored.organization == req.Organization):
		result, err := w.documents.remove(ctx, req.RecordID, at)
		return req.Organization, result, err
	}
	return w.findOwner(ctx, req, at, stored.organization, []string{named, stored.organization}, other)
}

// findOwner requests the record whose document names another organization than the upstream does: under the candidates, then
// under all organizations of the repository, each once, until a response decides what the document must be. The document
// stays when all of them say that the record belongs to another organization.
func (w *writer) findOwner(
	ctx context.Context, req core.Request, at writeVersion, stored string, candidates []string, other bool,
) (string, results, error) {
	tried := []string{"", req.Organization}
	for under, all := req, false; ; {
		candidates = slices.DeleteFunc(candidates, func(o string) bool { return slices.Contains(tried, o) })
		switch {
		case len(candidates) == 0 && !all:
			var err error
			if candidates, err = w.Fetcher.CurrentOrganizations(ctx); err != nil {
				return req.Organization, nil, err
			}
			all = true
			continue
		case len(candidates) == 0 && other:
			return req.Organization, mismatch(req.RecordID), nil
		case len(candidates) == 0:
			result, err := w.documents.remove(ctx, req.RecordID, at)
			return req.Organization, result, err
		}
		under.Organization = candidates[0]
		tried = append(tried, under.Organization)
		rec, fetchedAt, err := w.fetch(ctx, under)
		switch {
		case err == nil && rec.Indexable && under.Organization == stored:
			rec.Release()
			return req.Organization, mismatch(req.RecordID), nil
		case err == nil:
			result, err := w.writeFetched(ctx, rec, fetchedAt, at)
			return under.Organization, result, err
		case errors.Is(err, core.ErrOtherOrganization):
			candidates, other = append([]string{rec.Organization}, candidates...), true
		case core.CodeOf(err) != core.CodeAbsent:
			return req.Organization, nil, err
		case !errors.Is(err, core.ErrOrganizationAbsent):
			result, err := w.documents.remove(ctx, req.RecordID, at)
			return under.Organization, result, err
		}
	}
}
