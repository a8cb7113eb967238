package outcome

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"tutti/internal/core"
)

// Limits from which rejections are attributed to the mapping of a repository instead of to single records.
const (
	// rejectWindow is the number of documents whose rejections are counted together. With a smaller one a single bad upload
	// would pause a repository; with a larger one more dead letters, up to two windows of them, would be stored before a
	// wrong mapping is noticed.
	rejectWindow = 1000
	// rejectTrial is the number of documents that are tried after a pause, and so the maximum number of dead letters of a
	// trial.
	rejectTrial = 20
	// rejectShare is the percentage of rejected documents of a window at which the repository pauses.
	rejectShare = 95
	// rejectPause is the first pause. Each following one is twice as long, up to rejectPauseMax.
	rejectPause    = time.Minute
	rejectPauseMax = 10 * time.Minute
	// maxFieldBytes bounds the name of a field in a reason.
	maxFieldBytes = 200
)

// rejectionMonitor detects that the index rejects nearly all documents of a repository, because its mapping fits none of
// them: a dead letter for each would only fill the disk. The zero value is ready.
type rejectionMonitor struct {
	mu       sync.Mutex
	seen     int
	rejected int
	kinds    map[string]int // rejected documents by rejectionKind
	// trial is true from a pause until a few documents were accepted; pauses counts the pauses since the last whole window
	// that was not rejected.
	trial  bool
	pauses int
	// until is the end of the last pause, reason its cause.
	until  time.Time
	reason string
}

// add counts the outcome of a written document, and reports whether the repository must pause, or is paused.
func (x *rejectionMonitor) add(res core.Result, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Before(x.until) {
		return true
	}
	x.seen++
	if res.Outcome == core.OutcomeRejected {
		if x.kinds == nil {
			x.kinds = make(map[string]int)
		}
		x.kinds[rejectionKind(res)]++
		x.rejected++
	}
	if x.seen < rejectWindow && !x.trial || x.seen < rejectTrial {
		return false
	}
	nearlyAll := x.rejected*100 >= x.seen*rejectShare
	switch {
	case nearlyAll:
		x.pause(now)
	case !x.trial:
		x.pauses = 0
	}
	x.trial = nearlyAll
	x.seen, x.rejected = 0, 0
	clear(x.kinds)
	return nearlyAll
}

// pause starts a pause; the lock must be held.
func (x *rejectionMonitor) pause(now time.Time) {
	most, kind := 0, ""
	for k, n := range x.kinds {
		if n > most || n == most && k < kind {
			most, kind = n, k
		}
	}
	pause := min(rejectPauseMax, rejectPause<<min(x.pauses, 10))
	x.pauses++
	x.until = now.Add(pause)
	x.reason = fmt.Sprintf("the index rejects nearly all documents: %s; fix the index mapping (mappingFile) or the records; "+
		"the next %d documents are tried in %s", kind, rejectTrial, pause)
}

// remaining returns the remaining time of the pause, 0 for none, and its reason.
func (x *rejectionMonitor) remaining(now time.Time) (time.Duration, string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return max(0, x.until.Sub(now)), x.reason
}

// rejectionKind names the engine's type of error, and the field if it names one.
func rejectionKind(res core.Result) string {
	field := rejectedField(res.Reason)
	if field == "" {
		return res.Type
	}
	return fmt.Sprintf("%s, field %q", res.Type, field)
}

// rejectedField returns the field that an engine's reason names, "" for none. Elasticsearch writes "failed to parse field
// [a.b] of type …", "object mapping for [a.b] …" and "dynamic introduction of [c] within …", the embedded index "[a.b]
// failed …".
func rejectedField(reason string) string {
	for _, before := range []string{" mapping for [", " field [", " introduction of ["} {
		if _, rest, ok := strings.Cut(reason, before); ok {
			field, _, _ := strings.Cut(rest, "]")
			return Truncate(field, maxFieldBytes)
		}
	}
	rest, named := strings.CutPrefix(reason, "[")
	field, _, closed := strings.Cut(rest, "] ")
	if !named || !closed || strings.Contains(field, ":") { // a line and column of Elasticsearch
		return ""
	}
	return Truncate(field, maxFieldBytes)
}

// pausesFor counts the outcome of a document and reports whether it is a rejection that is not final, because the repository
// pauses for it. A record that already has a dead letter does not count, as it adds none.
func (o *Outcomes) pausesFor(organization, id string, res core.Result) bool {
	now := time.Now()
	switch res.Outcome {
	case core.OutcomeIndexed:
		o.rejections.add(res, now)
		return false
	case core.OutcomeRejected:
		if res.Code == core.CodeTooLarge { // the record was not sent to the index
			return false
		}
		if o.deadLetters.Has(o.code, organization, id) {
			return o.PausedByRejections()
		}
		if !o.rejections.add(res, now) {
			return false
		}
		_, why := o.rejections.remaining(now)
		o.pause.Set(why, nil)
		return true
	case core.OutcomeRemoved, core.OutcomeStale, core.OutcomeMismatch, core.OutcomeRetry, core.OutcomeExcluded:
	}
	return false
}

// RejectionPause returns the remaining time of the pause for rejections, 0 for none, and its reason.
func (o *Outcomes) RejectionPause() (time.Duration, string) {
	return o.rejections.remaining(time.Now())
}

// PausedByRejections reports whether the repository pauses because nearly all its documents are rejected.
func (o *Outcomes) PausedByRejections() bool {
	pause, _ := o.RejectionPause()
	return pause > 0
}
