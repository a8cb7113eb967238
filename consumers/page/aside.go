package page

import (
	"context"

	"tutti/internal/core"
)

// maxAsideRows is how many rows are set aside with their documents, up to core.MaxDeadLetterBytes each, before they
// are stored as dead letters.
const maxAsideRows = 16

// asideRow is a row that cannot be a document, with the hash of its id.
type asideRow struct {
	hash   uint64
	letter core.DeadLetter
	stored bool
}

// setAside keeps a row that cannot be a document, because of its id, its size or its content.
func (p *pass) setAside(ctx context.Context, rec core.Record, hash uint64, reason, hint string) error {
	kept := rec.TooLarge
	if kept == nil {
		kept = core.NewDeadLetterDocument(rec.Body)
	}
	id := rec.ID
	if id == "" {
		id = "without-id-" + kept.SHA256
	}
	if p.w.ledger.isSettled(id) {
		return nil
	}
	p.aside = append(p.aside, asideRow{hash: hash, letter: core.DeadLetter{
		Repository: p.w.cfg.Repository.Code, Organization: p.w.organization.name, RecordID: id, Reason: reason, Hint: hint,
		Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated, Version: p.w.message.Version(),
	}})
	if len(p.aside)%maxAsideRows != 0 {
		return nil
	}
	return p.storeAside(ctx)
}

// storeAside stores dead letters for the rows that were set aside, and releases their documents.
func (p *pass) storeAside(ctx context.Context) error {
	cfg := p.w.cfg
	for i := range p.aside {
		row := &p.aside[i]
		if row.stored {
			continue
		}
		err := cfg.Loop.RetryUntilStopped(ctx, "storing a dead letter", func() error {
			return cfg.Outcomes.StoreDeadLetter(ctx, p.w.recordRequest(row.letter.RecordID), row.letter)
		})
		if err != nil {
			return err
		}
		row.stored, row.letter.Document = true, nil
	}
	return nil
}

// settleAside settles the rows that were set aside, once the page was read completely.
func (p *pass) settleAside(ctx context.Context) error {
	if err := p.storeAside(ctx); err != nil {
		return err
	}
	for _, row := range p.aside {
		p.w.ledger.settle(row.letter.RecordID)
		if p.countOnce(row.hash) {
			p.w.ledger.totals.Rejected++
		}
	}
	p.w.cfg.Outcomes.Count(core.OutcomeRejected, len(p.aside))
	return nil
}
