package outcome

import (
	"context"
	"fmt"
	"time"

	"tutti/internal/bulk"
	"tutti/internal/core"
)

// DeadLetters stores dead letters. Has is cheap enough to be called for every document.
type DeadLetters interface {
	Put(ctx context.Context, d core.DeadLetter) error
	Clear(ctx context.Context, repository, organization, id string) error
	Has(repository, organization, id string) bool
	// Find returns the dead letter of a record as stored, or CodeNotFound.
	Find(ctx context.Context, repository, organization, id string) (core.DeadLetter, error)
}

// maxIDBytes bounds an id in a log line.
const maxIDBytes = 600

// HasDeadLetter reports whether a record has a dead letter.
func (o *Outcomes) HasDeadLetter(organization, id string) bool {
	return o.deadLetters.Has(o.code, organization, id)
}

// FindDeadLetter returns the dead letter of a record, or CodeNotFound.
func (o *Outcomes) FindDeadLetter(ctx context.Context, organization, id string) (core.DeadLetter, error) {
	return o.deadLetters.Find(ctx, o.code, organization, id)
}

// ClearDeadLetter removes the dead letter of a record, if there is one.
func (o *Outcomes) ClearDeadLetter(ctx context.Context, organization, id string) error {
	if !o.HasDeadLetter(organization, id) {
		return nil
	}
	return o.deadLetters.Clear(ctx, o.code, organization, id)
}

// StoreRejected stores a rejected document as a dead letter; its message must not end before that.
func (o *Outcomes) StoreRejected(ctx context.Context, req core.Request, id string, result core.Result) error {
	letter := core.DeadLetter{
		Repository: o.code, Organization: req.Organization, RecordID: id, Reason: core.ReasonRejected,
		Hint:       "fix the record or the index mapping, then retry",
		EngineType: result.Type, EngineReason: result.Reason,
	}
	switch {
	case result.Code == core.CodeTooLarge:
		letter.Reason, letter.Hint = core.ReasonTooLarge, o.TooLargeHint()
	case result.Type == bulk.TypeTooLarge:
		letter.Reason = core.ReasonTooLarge
		letter.Hint = "the document is larger than the index accepts in one request"
	}
	if kept := result.Rejected; kept != nil {
		letter.Document, letter.Size, letter.SHA256, letter.Truncated = kept.Bytes, kept.Size, kept.SHA256, kept.Truncated
	}
	return o.StoreDeadLetter(ctx, req, letter)
}

// TooLargeHint returns the hint for a record above the size limit.
func (o *Outcomes) TooLargeHint() string {
	return fmt.Sprintf("the record is larger than index.maxRecordBytes, %d bytes; make it smaller or raise the limit, then retry",
		o.cfg.MaxRecordBytes)
}

// StoreDeadLetter completes and stores a dead letter for one record.
func (o *Outcomes) StoreDeadLetter(ctx context.Context, req core.Request, letter core.DeadLetter) error {
	letter.LastAt = time.Now().UTC()
	if letter.FirstAt = req.NotFoundSince; letter.FirstAt.IsZero() {
		letter.FirstAt = letter.LastAt
	}
	letter.Attempts = max(1, letter.Attempts)
	letter.JobID, letter.Request = req.JobID, &req
	if err := o.deadLetters.Put(ctx, letter); err != nil {
		return err
	}
	o.log.Warn("record moved to the dead letters", "organization", letter.Organization, "record_id", Truncate(letter.RecordID, maxIDBytes),
		"request_id", req.ID, "reason", letter.Reason, "engine_type", letter.EngineType)
	return nil
}
