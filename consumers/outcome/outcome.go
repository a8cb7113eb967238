// Package outcome turns the outcomes of a repository's documents into dead letters, pauses, alarms and metrics.
//
// It imports internal/core and internal/bulk only.
package outcome

import (
	"log/slog"
	"sync/atomic"
	"time"

	"tutti/internal/core"
)

// Pause pauses a repository.
type Pause interface {
	Set(reason string, cause error)
}

// Config holds the settings of Outcomes; all but Metrics are required.
type Config struct {
	Repository core.Repository
	Logger     *slog.Logger
	Metrics    *Metrics
	// MaxRecordBytes is the size above which the upstream returns no record.
	MaxRecordBytes int
	// ClockSkew is how far a stored version may lie ahead of the clock without raising the alarm.
	ClockSkew time.Duration
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

// PauseOnCode pauses the repository when code means that the index as a whole takes no writes.
func (o *Outcomes) PauseOnCode(code core.Code) {
	switch code {
	case core.CodeIndexBlocked:
		o.pause.Set("the index is missing, closed or blocked", nil)
	case core.CodeUnavailable:
		o.pause.Set("the index does not respond", nil)
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
