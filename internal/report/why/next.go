package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

// Next returns one sentence with the next step for a record. It depends on nothing but the trace.
func Next(t recordtrace.Trace) string {
	switch {
	case t.Queue.Status == recordtrace.StatusPending:
		return pendingStep(t)
	case unread(t.Upstream.Part):
		return "the repository did not return the record: " + t.Upstream.Error + "; try again when it answers, and see /ready"
	case unread(t.Index.Part):
		return "the index did not answer: " + t.Index.Error + "; try again when it does, and see /ready"
	case t.Upstream.Status == recordtrace.StatusFound, t.Upstream.Status == recordtrace.StatusTooLarge:
		return foundStep(t)
	default:
		return goneStep(t)
	}
}

// unread reports whether a part could not be read.
func unread(p recordtrace.Part) bool {
	return p.Status == recordtrace.StatusError || p.Status == recordtrace.StatusUnknown
}

// pendingStep is the step while a request for the record is pending.
func pendingStep(t recordtrace.Trace) string {
	r := t.Queue.Request
	text := "a request is pending since " + r.ReceivedAt.UTC().Format(time.RFC3339)
	if t.Queue.Paused != "" {
		return text + "; the repository is paused because " + t.Queue.Paused
	}
	if r.Attempts > 0 {
		return fmt.Sprintf("%s and is retried, with %d failed attempts; the log of the server has the reason", text, r.Attempts)
	}
	return text + "; it will be processed without further action"
}

// foundStep is the step for a record that the upstream has in an indexed state.
func foundStep(t recordtrace.Trace) string {
	current := t.Index.Comparison == recordtrace.ComparisonEqual
	switch {
	case len(t.DeadLetters.Letters) > 0:
		return letterStep(t.DeadLetters.Letters[0])
	case t.Upstream.Status == recordtrace.StatusTooLarge:
		return fmt.Sprintf("the record has %d bytes, more than index.maxRecordBytes; raise that limit or make the record smaller, "+
			"then index it with: %s", t.Upstream.Bytes, indexCommand(t))
	case current:
		return "nothing to do: the index holds the newest state"
	case t.Index.Status == recordtrace.StatusOther:
		return "the index holds a document with this id from another organization or repository; to give the record its own, " +
			"change one of the ids or the index name"
	}
	if step, ok := waitStep(t); ok {
		return step
	}
	switch {
	case t.Index.Status == recordtrace.StatusAbsent && t.Index.Comparison == "" && len(t.Index.Documents) == 0:
		return "the record has no document to index in this form, or it cannot be made; see the reason with: " + indexCommand(t)
	case t.Index.Comparison == recordtrace.ComparisonUnknown:
		return "the index holds documents of the record, but whether they are the newest is unknown; index it with: " + indexCommand(t)
	case !t.Index.Truncated && !slices.ContainsFunc(t.Index.Documents, func(d recordtrace.Document) bool { return d.Content != recordtrace.ComparisonEqual }):
		return "the index holds the newest state, but with another repositories block than the configuration has now; " +
			"index it with: " + indexCommand(t)
	case t.Index.Status == recordtrace.StatusPresent:
		return "the index holds another state than the repository; index it with: " + indexCommand(t)
	default:
		return "the record is not in the index; index it with: " + indexCommand(t)
	}
}

// letterStep is the step for a record with a dead letter.
func letterStep(l recordtrace.DeadLetter) string {
	if l.Reason == core.ReasonInvalidID {
		return "the record cannot be requested by its id; change the id in its repository, run its organization, then discard " +
			"the dead letter with: tutti dead-letters discard " + shellWord(l.ID)
	}
	text := "the record was not indexed (" + l.Reason + ")"
	if l.Hint != "" {
		text += ": " + strings.TrimSuffix(l.Hint, ".")
	}
	return text + "; retry the dead letter with: tutti dead-letters retry " + shellWord(l.ID)
}

// goneStep is the step for a record that the upstream does not have in an indexed state.
func goneStep(t recordtrace.Trace) string {
	reason := "the repository does not have the record in this organization"
	switch t.Upstream.Status {
	case recordtrace.StatusExcluded:
		if rule := t.Upstream.ExcludedBy; rule != nil {
			reason = fmt.Sprintf("the record is excluded: exclude.%s of repository %s lists %s", rule.List, t.Repository, rule.ID)
			break
		}
		if t.Upstream.PartOf != "" {
			reason = "the record is part of central record " + t.Upstream.PartOf + ", whose document contains it; see: tutti why " +
				shellWord(t.Repository) + " " + shellWord(t.Organization) + " " + shellWord(t.Upstream.PartOf)
			break
		}
		if t.Upstream.Reason != "" {
			reason = "the record " + t.Upstream.Reason
			break
		}
		if t.Upstream.State == "" {
			reason = "the record is not valid upstream, or not of an entity that is indexed"
			break
		}
		reason = "the record is " + t.Upstream.State + " upstream; only " + strings.Join(t.Upstream.IndexedStates, ", ") + " records are indexed"
	case recordtrace.StatusOther:
		reason = "the repository has the record under another organization; ask for it there"
	}
	if t.Index.Status != recordtrace.StatusPresent {
		if len(t.DeadLetters.Letters) > 0 {
			reason += "; discard its dead letter with: tutti dead-letters discard " + shellWord(t.DeadLetters.Letters[0].ID)
		} else if t.Upstream.ExcludedBy != nil {
			reason += "; to index it, delete that id from the configuration, restart tutti, then use: " + indexCommand(t)
		}
		return reason
	}
	if step, ok := waitStep(t); ok {
		return reason + "; " + step
	}
	if job := t.Jobs.LastEnded; job != nil && (&core.JobError{Code: job.ErrorCode}).Guard() {
		reason += "; the guard of the last run kept its documents (" + job.ErrorCode + ")"
	}
	return reason + "; its documents are removed with: " + indexCommand(t)
}

// waitStep is the step while something in progress may bring the record up to date; false if nothing is.
func waitStep(t recordtrace.Trace) (string, bool) {
	waiting := ""
	switch {
	case awaited(t.Jobs.InProgress) != nil:
		job := awaited(t.Jobs.InProgress)
		waiting = "a run of its " + string(job.Scope)
		if job.Scope == core.ScopeIDs {
			waiting = "a job over a list of ids with this one"
		}
		waiting += " is in progress (" + string(job.State) + ")"
		if job.ID != "" {
			waiting += "; follow it with: tutti jobs show " + shellWord(job.ID) + " --watch"
		}
	case t.Queue.Batches > 0:
		waiting = fmt.Sprintf("%d batches of requests are pending and may name the record; ask again when they are processed", t.Queue.Batches)
	default:
		return "", false
	}
	if t.Queue.Paused != "" {
		waiting += "; the repository is paused because " + t.Queue.Paused
	}
	return waiting, true
}

// awaited returns the newest job in progress that has not processed the record, as far as that is known, nil for none.
func awaited(jobs []recordtrace.Job) *recordtrace.Job {
	for i := range jobs {
		if !jobs[i].Outcome.Settled() {
			return &jobs[i]
		}
	}
	return nil
}

// indexCommand returns the command that indexes a record.
func indexCommand(t recordtrace.Trace) string {
	return "tutti index " + shellWord(t.Repository) + " " + shellWord(t.Organization) + " " + shellWord(t.ID)
}

// shellWord quotes a word for a POSIX shell if that is necessary.
func shellWord(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:/@+=,", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
