package record

import (
	"context"
	"time"

	"tutti/internal/core"
)

// requestHolder requests the record that contains req's record, if that is part of another one: the record is then rec, or the upstream no
// longer has it. If the holder is not known, the organization's difference is run, which finds it.
func (w *writer) requestHolder(ctx context.Context, req core.Request, at writeVersion, rec core.Record) error {
	// A sweep's Request is for a stored document, and its run has listed the holder.
	if req.Cause == core.CauseSweep || at.strict || rec.Part != nil && rec.Organization != req.Organization {
		return nil
	}
	part := rec.Part
	if part == nil {
		part = req.Part
	}
	if part == nil { // the entity of an absent record is not known, unless it has a document
		stored, err := w.owner(ctx, req.RecordID)
		if err != nil || stored.found {
			return err
		}
		part = new(core.Part)
	}
	id, isPart, err := w.Fetcher.Holder(ctx, req.Organization, *part)
	switch {
	case err != nil || !isPart:
		return err
	case id == "":
		return w.RunDifference(ctx, req.Organization, req.Cause, req.ID)
	}
	holder := core.Request{
		ID: req.ID, Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: req.Repository, Organization: req.Organization, RecordID: id,
		Cause: req.Cause, ReceivedAt: time.Now().UTC(), Traceparent: req.Traceparent, AsOf: at.version,
	}
	if err := holder.Validate(); err != nil {
		return w.RunDifference(ctx, req.Organization, req.Cause, req.ID)
	}
	return w.Requests.PublishUnlessRemovalPending(ctx, holder)
}
