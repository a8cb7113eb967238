// Package outcome turns the outcomes of a repository's documents into dead letters, pauses, alarms and metrics.
//
// It imports internal/core, internal/base/span, internal/base/jsontext and internal/index/bulk only.
package outcome

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tutti/internal/base/span"
	"tutti/internal/core"
	"tutti/internal/index/bulk"
)

// Pause pauses a repository.
type Pause interface {
	// Start pauses it unless it is paused. The log says so at once if the reason is known, else when the next check of the index has ended.
	Start(reason string, known bool)
	// Set pauses it, or changes the reason.
	Set(reason string, cause error)
}

// Config holds the settings of Outcomes; all but Metrics are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	Metrics    *Metrics
	// MaxRecordBytes is the size above which the upstream returns no record.
	MaxRecordBytes int
	// MappingFile is the mapping file of the repository's index, "" for none; for hints.
	MappingFile string
	// ClockSkew is how far a stored version may lie ahead of the clock without raising the alarm.
	ClockSkew time.Duration
	// Shared is the index that the repository shares with others; nil if it shares none.
	Shared *Shared
}

// Outcomes handles the outcomes of one repository's documents. It is safe for concurrent use.
type Outcomes struct {
	code, indexName string
	cfg             Config
	log             *slog.Logger
	pause           Pause
	deadLetters     DeadLetters
	rejections      rejectionMonitor
	clockAlarm      atomic.Int64 // Unix time of the last alarm in ns, 0 for none
}

// New returns the outcomes of a repository.
func New(deadLetters DeadLetters, pause Pause, cfg Config) *Outcomes {
	return &Outcomes{
		code: cfg.Repository.Code, indexName: cfg.Repository.IndexName, cfg: cfg, log: cfg.Logger,
		pause: pause, deadLetters: deadLetters,
	}
}

// Count counts n documents with an outcome.
func (o *Outcomes) Count(outcome core.Outcome, n int) {
	o.cfg.Metrics.addDocuments(o.indexName, outcome, n)
}

// Ended observes the time from storing a Request with the given version to the final outcome of its documents. success is
// true when one of them was written or needed no write.
func (o *Outcomes) Ended(scope core.Scope, stored core.Version, success bool) {
	o.cfg.Metrics.observeToIndex(o.code, scope, stored)
	if success {
		o.cfg.Metrics.succeeded(o.code)
	}
}

// AddDrift counts what a run of the difference found.
func (o *Outcomes) AddDrift(d core.Drift) { o.cfg.Metrics.addDrift(o.code, d) }

// PauseOnCode pauses the repository when code means that the index as a whole takes no writes.
func (o *Outcomes) PauseOnCode(code core.Code) {
	switch code {
	case core.CodeIndexBlocked:
		o.pause.Start("the index is missing, closed or blocked", false)
	case core.CodeUnavailable:
		o.pause.Start("the index does not answer", true)
	default:
	}
}

// PauseOnError pauses the repository when err means that the index takes no writes, and returns err.
func (o *Outcomes) PauseOnError(err error) error {
	o.PauseOnCode(core.CodeOf(err))
	return err
}

// AheadOfClock reports whether a stored version lies ahead both of the message's and of now: a clock was set back since, so
// the version does not prove that the document is newer. It raises the clock alarm when the difference exceeds
// Config.ClockSkew.
func (o *Outcomes) AheadOfClock(message, stored core.Version) bool {
	if stored <= message {
		return false
	}
	now := time.Now()
	latest := max(message, core.Version(now.UnixNano()))
	if stored <= latest {
		return false
	}
	if stored > latest+core.Version(o.cfg.ClockSkew) {
		o.clockAlarm.Store(now.UnixNano())
		o.cfg.Metrics.addClockAlarm(o.code)
	}
	return true
}

// ClockAlarm reports whether the clock alarm was raised in the last minute.
func (o *Outcomes) ClockAlarm() bool {
	at := o.clockAlarm.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < time.Minute
}

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

// MarkerID returns the id of the marker of a record with several documents: that of a document that never exists, whose tombstone
// holds the version with which the record was last processed.
func MarkerID(recordID string) string {
	sum := sha256.Sum256([]byte(recordID))
	return "record-" + hex.EncodeToString(sum[:])
}

// StoreRejected stores a document that was rejected with a version as a dead letter; its message must not end before that.
func (o *Outcomes) StoreRejected(ctx context.Context, req core.Request, id string, at core.Version, result core.Result) error {
	letter := core.DeadLetter{
		Repository: o.code, Organization: req.Organization, RecordID: id, Reason: core.ReasonRejected,
		Hint:       cmp.Or(result.Hint, o.kindHint(result), nameHint(result), o.mappingHint(result)),
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
func (o *Outcomes) kindHint(result core.Result) string {
	if result.Type != core.TypeOtherKind {
		return ""
	}
	_, holds, _ := strings.Cut(result.Reason, "] ")
	return fmt.Sprintf("the field %q %s: fix the record, then retry; or describe the field in %s and run tutti index %s --rebuild (which alone is enough "+
		"once most records hold this kind)", rejectedField(result.Reason), holds, cmp.Or(o.cfg.MappingFile, "a mapping file (mappingFile)"), o.code)
}

// mappingHint returns the hint for a document that the mapping of the index does not allow. It names the field if the engine does.
func (o *Outcomes) mappingHint(result core.Result) string {
	field := rejectedField(result.Reason)
	if field == "" {
		return "fix the record or the index mapping, then retry"
	}
	if result.Type == core.TypeNewField {
		return fmt.Sprintf("newFields is reject, and the mapping does not have the field %q: add it to the mapping file, or remove it from the record, "+
			"then retry; newFields: add or ignore accepts it", field)
	}
	text := fmt.Sprintf("the value of the field %q does not fit its type in the index: %sfix the record, then retry; ", field, kindsOf(field, result))
	if o.cfg.Shared != nil {
		return text + "or if the type of the field has changed, give the repositories that share the index " + o.indexName + " another indexName"
	}
	return text + "or if the type of the field has changed, run tutti index " + o.code + " --rebuild (after describing the field in " +
		cmp.Or(o.cfg.MappingFile, "a mapping file (mappingFile)") + ", if most records hold another kind or its type is declared)"
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
	o.log.WarnContext(ctx, "record moved to the dead letters", "organization", letter.Organization, "record_id", Truncate(letter.RecordID, maxIDBytes),
		"request_id", req.ID, "reason", letter.Reason, "engine_type", letter.EngineType)
	return nil
}

// Truncate shortens a text that is longer than maxBytes.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}
