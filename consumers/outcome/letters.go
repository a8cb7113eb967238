package outcome

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// DeadLetters stores dead letters. Has is cheap enough to be called for every document.
type DeadLetters interface {
	Put(ctx context.Context, d core.DeadLetter) error
	// Clear removes the dead letter of a record if there is one, clears returns true for its Reason, and its version is not newer than at,
	// 0 for any. It is cheap if there is none, unless at is 0.
	Clear(ctx context.Context, repository, organization, id string, at core.Version, clears func(core.DeadLetter) bool) error
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

// ClearDeadLetter removes the dead letter of a record after a result with a version, if there is one that is not newer, but not that of a
// conflict, which SettleBlocks removes.
func (o *Outcomes) ClearDeadLetter(ctx context.Context, organization, id string, at core.Version) error {
	return o.deadLetters.Clear(ctx, o.code, organization, id, at, func(l core.DeadLetter) bool { return o.cfg.Shared == nil || !isConflict(l) })
}

// TypeUnusableRecord is the type of the error of a record that cannot be documents.
const TypeUnusableRecord = "unusable_record"

// Settle stores the dead letter of a document of req's record, which was settled under organization with a version, when res is that it was
// rejected. Otherwise it removes it, after res has shown that it is no longer true. Then it processes what a write to a shared index says about the record of each repository: a record in conflict becomes a
// dead letter, the dead letter of one that no longer is is removed, and the record that the document must be made of is requested. id is
// that of the document. The message must not end before it succeeds.
//
// Others may write the document and settle it at the same time, in any order. Therefore what counts is not the result but the document
// as it is after the last change of the dead letters: who changes them reads both once more. A document that never had a conflict needs
// no reading: of the others, the document itself says which records had one (core.SharedState.Conflicts), so that a write after a crash
// settles what was not settled before. In an index that is not shared, only what kind of Request req is and its Organization count.
func (o *Outcomes) Settle(ctx context.Context, req core.Request, organization, id string, at core.Version, res core.Result) error {
	if res.Outcome == core.OutcomeRejected {
		req.Organization = organization
		return o.StoreRejected(ctx, req, id, at, res)
	}
	had := false
	if o.cfg.Shared != nil {
		had = o.HasDeadLetter(organization, id) || o.HasDeadLetter(req.Organization, id)
	}
	stale := res.Outcome == core.OutcomeStale
	if stale {
		at = max(at, res.CurrentVersion) // the result that the index has
	}
	if !stale || req.Kind == core.KindIndex && !req.Dated() { // an old event proves nothing about later failures
		if err := o.ClearDeadLetter(ctx, req.Organization, id, at); err != nil {
			return err
		}
		if organization != req.Organization && !stale {
			if err := o.ClearDeadLetter(ctx, organization, id, at); err != nil {
				return err
			}
		}
	}
	if o.cfg.Shared == nil {
		return nil
	}
	written := core.SharedState{}
	if res.Shared != nil {
		written = *res.Shared
	}
	for _, b := range written.Blocks {
		if b.Fetch {
			o.cfg.Logger.InfoContext(ctx, "the record of another repository takes over a document", "other", b.Repository, "organization", b.Organization,
				"record_id", Truncate(b.RecordID, maxIDBytes))
			if err := o.cfg.Shared.Publish(ctx, o.requestOf(req, b)); err != nil {
				return err
			}
		}
	}
	marker := o.cfg.Repository.Fields.Document != "" && id == req.RecordID
	// Without the document, or a block in it, it is not known what was settled.
	records := o.conflicts(req, organization, id, written, had || len(written.Blocks) == 0 && !marker)
	return o.settleConflicts(ctx, req, id, records, written.Blocks)
}

// Document is the result of one document of a record.
type Document struct {
	ID string
	core.Result
	// Marker is set for the marker of a record with several documents, which is not counted.
	Marker bool
}

// SettleRecord settles req's record, whose documents were written under organization with a version: each as Settle does, and the dead letter
// of req.Document if the record no longer has that document. After an error, also of an index that did not take a document, the record has
// no final result.
func (o *Outcomes) SettleRecord(ctx context.Context, req core.Request, organization string, at core.Version, documents []Document) error {
	at = req.ResultVersion(at)
	for _, d := range documents {
		if o.pausesFor(organization, d.ID, d.Result) {
			return core.NewError(core.CodeOverloaded, "the index rejects nearly all documents")
		}
		switch d.Outcome {
		case core.OutcomeIndexed, core.OutcomeRemoved, core.OutcomeExcluded, core.OutcomeStale, core.OutcomeRejected:
			if err := o.Settle(ctx, req, organization, d.ID, at, d.Result); err != nil {
				return err
			}
		case core.OutcomeMismatch:
			o.cfg.Logger.InfoContext(ctx, "record belongs to another organization", "organization", req.Organization,
				"record_id", req.RecordID, "request_id", req.ID)
		case core.OutcomeRetry:
			o.PauseOnCode(d.Code)
			return core.NewError(d.Code, "the index did not take the document")
		}
	}
	if req.Document != "" && !slices.ContainsFunc(documents, func(d Document) bool { return d.ID == req.Document }) {
		return o.ClearDeadLetter(ctx, req.Organization, req.Document, at)
	}
	return nil
}

// StoreRejected stores a document that was rejected with a version as a dead letter; its message must not end before that.
func (o *Outcomes) StoreRejected(ctx context.Context, req core.Request, id string, at core.Version, result core.Result) error {
	letter := core.DeadLetter{
		Repository: o.code, Organization: req.Organization, RecordID: id, Reason: core.ReasonRejected,
		Hint:       cmp.Or(result.Hint, o.cfg.kindHint(result), nameHint(result), o.cfg.mappingHint(result)),
		EngineType: result.Type, EngineReason: result.Reason, Version: at,
	}
	switch {
	case result.Code == core.CodeTooLarge:
		letter.Reason, letter.Hint = core.ReasonTooLarge, o.TooLargeHint()
	case result.Type == bulk.TypeTooLarge:
		letter.Reason = core.ReasonTooLarge
		letter.Hint = "the document is larger than the index accepts in one request"
	case result.Type == TypeUnusableRecord:
		letter.Hint = "fix the record, then retry"
	}
	if id != req.RecordID {
		letter.Hint = fmt.Sprintf("a document of record %s: %s", Truncate(req.RecordID, maxIDBytes), letter.Hint)
	}
	if kept := result.Rejected; kept != nil {
		letter.Document, letter.Size, letter.SHA256, letter.Truncated = kept.Bytes, kept.Size, kept.SHA256, kept.Truncated
	}
	return o.StoreDeadLetter(ctx, req, letter)
}

// kindHint returns the hint for a value of another JSON kind than a rebuild has decided, "" for another result.
func (c Config) kindHint(result core.Result) string {
	if result.Type != core.TypeOtherKind {
		return ""
	}
	_, holds, _ := strings.Cut(result.Reason, "] ")
	return fmt.Sprintf("the field %q %s: fix the record, then retry; or describe the field in %s and run tutti index %s --rebuild (which alone is enough "+
		"once most records hold this kind)", rejectedField(result.Reason), holds, cmp.Or(c.MappingFile, "a mapping file (mappingFile)"), c.Repository.Code)
}

// mappingHint returns the hint for a document that the mapping of the index does not allow. It names the field if the engine does.
func (c Config) mappingHint(result core.Result) string {
	field := rejectedField(result.Reason)
	if field == "" {
		return "fix the record or the index mapping, then retry"
	}
	if result.Type == core.TypeNewField {
		return fmt.Sprintf("newFields is reject, and the mapping does not have the field %q: add it to the mapping file, or remove it from the record, "+
			"then retry; newFields: add or ignore accepts it", field)
	}
	text := fmt.Sprintf("the value of the field %q does not fit its type in the index: %sfix the record, then retry; ", field, kindsOf(field, result))
	if c.Shared != nil {
		return text + "or if the type of the field has changed, give the repositories that share the index " + c.Repository.IndexName + " another indexName"
	}
	return text + "or if the type of the field has changed, run tutti index " + c.Repository.Code + " --rebuild (after describing the field in " +
		cmp.Or(c.MappingFile, "a mapping file (mappingFile)") + ", if most records hold another kind or its type is declared)"
}

// TooLargeHint returns the hint for a record above the size limit.
func (o *Outcomes) TooLargeHint() string {
	return fmt.Sprintf("the record is larger than index.maxRecordBytes, %d bytes; make it smaller or raise the limit, then retry",
		o.cfg.MaxRecordBytes)
}

// StoreDeadLetter completes and stores a dead letter for one record.
func (o *Outcomes) StoreDeadLetter(ctx context.Context, req core.Request, letter core.DeadLetter) (err error) {
	ctx, s := span.Start(ctx, "store dead letter")
	s.Text("reason", string(letter.Reason))
	s.Text("organization", letter.Organization)
	s.Text("record_id", letter.RecordID)
	defer func() { s.End(err) }()
	letter.LastAt = time.Now().UTC()
	if letter.FirstAt = req.NotFoundSince; letter.FirstAt.IsZero() {
		letter.FirstAt = letter.LastAt
	}
	letter.Attempts = max(1, letter.Attempts)
	letter.JobID, letter.Request = req.JobID, &req
	if err := o.deadLetters.Put(ctx, letter); err != nil {
		return err
	}
	o.cfg.Logger.WarnContext(ctx, "record moved to the dead letters", "organization", letter.Organization, "record_id", Truncate(letter.RecordID, maxIDBytes),
		"request_id", req.ID, "reason", letter.Reason, "engine_type", letter.EngineType)
	return nil
}
