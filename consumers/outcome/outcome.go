// Package outcome turns the outcomes of a repository's documents into dead letters, pauses, alarms and metrics.
//
// It imports internal/core, internal/base/span, internal/base/jsontext and internal/index/bulk only.
package outcome

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"tutti/internal/core"
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
	code        string
	cfg         Config
	pause       Pause
	deadLetters DeadLetters
	rejections  rejectionMonitor
	clockAlarm  atomic.Int64 // Unix time of the last alarm in ns, 0 for none
}

// New returns the outcomes of a repository.
func New(deadLetters DeadLetters, pause Pause, cfg Config) *Outcomes {
	return &Outcomes{
		code: cfg.Repository.Code, cfg: cfg, pause: pause, deadLetters: deadLetters,
	}
}

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

// Postpones counts the result of a document that was written with a version, and reports whether it is not final. Then it makes it one to be
// retried, with the reason as its code: the repository pauses because nearly all documents are rejected (CodeOverloaded), or what is stored
// lies ahead of the clock (CodeConflict).
func (o *Outcomes) Postpones(organization, id string, at core.Version, res *core.Result) bool {
	ahead := res.NextVersion // of an index that another job fills
	if res.Outcome == core.OutcomeStale {
		ahead = max(ahead, res.CurrentVersion)
	}
	switch {
	case o.pausesFor(organization, id, *res):
		res.Outcome, res.Code = core.OutcomeRetry, core.CodeOverloaded
	case o.AheadOfClock(at, ahead):
		res.Outcome, res.Code = core.OutcomeRetry, core.CodeConflict
	}
	return res.Outcome == core.OutcomeRetry
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

// MarkerID returns the id of the marker of a record with several documents: that of a document that never exists, whose tombstone
// holds the version with which the record was last processed.
func MarkerID(recordID string) string {
	sum := sha256.Sum256([]byte(recordID))
	return "record-" + hex.EncodeToString(sum[:])
}

// Truncate shortens a text that is longer than maxBytes.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}
