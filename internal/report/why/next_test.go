package why_test

import (
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
	"tutti/internal/report/why"
)

// fact changes a trace.
type fact func(*recordtrace.Trace)

func upstream(status string) fact {
	return func(t *recordtrace.Trace) {
		t.Upstream.Status, t.Upstream.IndexedStates = status, []string{"PUBLISHED"}
		switch status {
		case recordtrace.StatusFound:
			t.Upstream.State = "PUBLISHED"
		case recordtrace.StatusExcluded:
			t.Upstream.State = "UNPUBLISHED"
		case recordtrace.StatusTooLarge:
			t.Upstream.Bytes = 77
		case recordtrace.StatusError:
			t.Upstream.Error = "connection refused"
		case recordtrace.StatusUnknown:
			t.Upstream.Error = "no answer within 2s"
		}
	}
}

func stored(c recordtrace.Comparison) fact {
	return func(t *recordtrace.Trace) {
		t.Index.Status, t.Index.Comparison = recordtrace.StatusPresent, c
		t.Index.Documents = []recordtrace.Document{{ID: "A 1", Stored: true, Comparison: c}}
	}
}

func notStored(t *recordtrace.Trace) {
	t.Index.Status = recordtrace.StatusAbsent
	if t.Upstream.Status == recordtrace.StatusFound {
		t.Index.Comparison = recordtrace.ComparisonDiffers
		t.Index.Documents = []recordtrace.Document{{ID: "A 1", Comparison: recordtrace.ComparisonDiffers}}
	}
}

func indexStatus(status string) fact {
	return func(t *recordtrace.Trace) { t.Index.Status, t.Index.Error = status, "timeout" }
}

func pending(attempts int) fact {
	return func(t *recordtrace.Trace) {
		t.Queue.Status = recordtrace.StatusPending
		t.Queue.Request = &recordtrace.Request{Attempts: attempts, ReceivedAt: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	}
}

func paused(t *recordtrace.Trace) { t.Queue.Paused = "the index is closed" }

func batches(t *recordtrace.Trace) { t.Queue.Batches = 2 }

func running(id string) fact {
	return func(t *recordtrace.Trace) {
		t.Jobs.InProgress = []recordtrace.Job{{ID: id, Scope: core.ScopeOrganization, State: core.JobRunning}}
	}
}

func listed(id string, outcome idlist.Outcome) fact {
	return func(t *recordtrace.Trace) {
		t.Jobs.InProgress = []recordtrace.Job{{ID: id, Scope: core.ScopeIDs, State: core.JobRunning, Outcome: outcome}}
	}
}

func ended(code string) fact {
	return func(t *recordtrace.Trace) {
		t.Jobs.LastEnded = &recordtrace.Job{ID: "J0", State: core.JobPartial, ErrorCode: code}
	}
}

func letter(reason string) fact {
	return func(t *recordtrace.Trace) {
		t.DeadLetters.Letters = []recordtrace.DeadLetter{{ID: "L1", Reason: reason, Hint: "fix the field."}}
	}
}

// rule excludes the record.
func rule(t *recordtrace.Trace) { t.Upstream.ExcludedBy = &core.Exclusion{List: "donors", ID: "DO1"} }

// part makes the record part of another one, and because excludes it for a reason.
func part(t *recordtrace.Trace) { t.Upstream.Reason, t.Upstream.PartOf = "is of another entity", "D 1" }

func because(t *recordtrace.Trace) { t.Upstream.State, t.Upstream.Reason = "", "is not valid" }

// TestNext: the next step follows from the facts alone.
func TestNext(t *testing.T) {
	const (
		command = "tutti index song.ca S1 'A 1'"
		since   = "a request is pending since 2026-05-04T12:00:00Z"
		excl    = "the record is UNPUBLISHED upstream; only PUBLISHED records are indexed"
		byRule  = "the record is excluded: exclude.donors of repository song.ca lists DO1"
		gone    = "the repository does not have the record in this organization"
		run     = "a run of its organization is in progress (running); follow it with: tutti jobs show J1 --watch"
		wait    = "2 batches of requests are pending and may name the record; ask again when they are processed"
		closed  = "; the repository is paused because the index is closed"
	)
	found, excluded, absent := upstream(recordtrace.StatusFound), upstream(recordtrace.StatusExcluded), upstream(recordtrace.StatusAbsent)
	for name, tt := range map[string]struct {
		facts []fact
		want  string
	}{
		"current":                        {[]fact{found, stored(recordtrace.ComparisonEqual)}, "nothing to do: the index holds the newest state"},
		"current during a run":           {[]fact{found, stored(recordtrace.ComparisonEqual), running("J1"), batches}, "nothing to do: the index holds the newest state"},
		"missing":                        {[]fact{found, notStored}, "the record is not in the index; index it with: " + command},
		"older":                          {[]fact{found, stored(recordtrace.ComparisonDiffers)}, "the index holds another state than the repository; index it with: " + command},
		"unknown":                        {[]fact{found, stored(recordtrace.ComparisonUnknown)}, "the index holds documents of the record, but whether they are the newest is unknown; index it with: " + command},
		"no documents":                   {[]fact{found, indexStatus(recordtrace.StatusAbsent)}, "the record has no document to index in this form, or it cannot be made; see the reason with: " + command},
		"missing during a run":           {[]fact{found, notStored, running("J1")}, run},
		"missing after its list":         {[]fact{found, notStored, listed("J1", idlist.Indexed)}, "the record is not in the index; index it with: " + command},
		"missing amid a list":            {[]fact{found, notStored, listed("J1", idlist.Queued)}, "a job over a list of ids with this one is in progress (running); follow it with: tutti jobs show J1 --watch"},
		"missing during a hidden run":    {[]fact{found, notStored, running("")}, "a run of its organization is in progress (running)"},
		"missing during a paused run":    {[]fact{found, notStored, running("J1"), paused}, run + closed},
		"older with batches":             {[]fact{found, stored(recordtrace.ComparisonDiffers), batches}, wait},
		"older with paused batches":      {[]fact{found, stored(recordtrace.ComparisonDiffers), batches, paused}, wait + closed},
		"other document":                 {[]fact{found, indexStatus(recordtrace.StatusOther)}, "the index holds a document with this id from another organization or repository; to give the record its own, change one of the ids or the index name"},
		"dead letter":                    {[]fact{found, notStored, letter(core.ReasonRejected)}, "the record was not indexed (rejected): fix the field; retry the dead letter with: tutti dead-letters retry L1"},
		"dead letter of an older state":  {[]fact{found, stored(recordtrace.ComparisonDiffers), letter(core.ReasonRejected), running("J1")}, "the record was not indexed (rejected): fix the field; retry the dead letter with: tutti dead-letters retry L1"},
		"dead letter of an id":           {[]fact{found, notStored, letter(core.ReasonInvalidID)}, "the record cannot be requested by its id; change the id in its repository, run its organization, then discard the dead letter with: tutti dead-letters discard L1"},
		"too large":                      {[]fact{upstream(recordtrace.StatusTooLarge), notStored}, "the record has 77 bytes, more than index.maxRecordBytes; raise that limit or make the record smaller, then index it with: " + command},
		"too large with a letter":        {[]fact{upstream(recordtrace.StatusTooLarge), notStored, letter(core.ReasonTooLarge)}, "the record was not indexed (too_large): fix the field; retry the dead letter with: tutti dead-letters retry L1"},
		"pending":                        {[]fact{found, notStored, pending(0)}, since + "; it will be processed without further action"},
		"pending again":                  {[]fact{found, notStored, pending(3), letter(core.ReasonRejected)}, since + " and is retried, with 3 failed attempts; the log of the server has the reason"},
		"pending while paused":           {[]fact{upstream(recordtrace.StatusError), notStored, pending(3), paused}, since + closed},
		"excluded":                       {[]fact{excluded, notStored}, excl},
		"excluded, stored":               {[]fact{excluded, stored(recordtrace.ComparisonDiffers)}, excl + "; its documents are removed with: " + command},
		"excluded, stored, run":          {[]fact{excluded, stored(recordtrace.ComparisonDiffers), running("J1")}, excl + "; " + run},
		"excluded, guarded":              {[]fact{excluded, stored(recordtrace.ComparisonDiffers), ended(core.JobErrorManyInvalid)}, excl + "; the guard of the last run kept its documents (many_invalid); its documents are removed with: " + command},
		"excluded, other error":          {[]fact{excluded, stored(recordtrace.ComparisonDiffers), ended(core.JobErrorListShifted)}, excl + "; its documents are removed with: " + command},
		"excluded, not stored, guarded":  {[]fact{excluded, notStored, ended(core.JobErrorManyInvalid)}, excl},
		"absent, guarded":                {[]fact{absent, stored(recordtrace.ComparisonDiffers), ended(core.JobErrorPruneGuard)}, gone + "; the guard of the last run kept its documents (prune_guard); its documents are removed with: " + command},
		"excluded with a letter":         {[]fact{excluded, notStored, letter(core.ReasonRejected)}, excl + "; discard its dead letter with: tutti dead-letters discard L1"},
		"rule":                           {[]fact{excluded, rule, notStored}, byRule + "; to index it, delete that id from the configuration, restart tutti, then use: " + command},
		"rule, stored":                   {[]fact{excluded, rule, stored(recordtrace.ComparisonDiffers)}, byRule + "; its documents are removed with: " + command},
		"rule with a letter":             {[]fact{excluded, rule, notStored, letter(core.ReasonRejected)}, byRule + "; discard its dead letter with: tutti dead-letters discard L1"},
		"part":                           {[]fact{excluded, part, notStored}, "the record is part of central record D 1, whose document contains it; see: tutti why song.ca S1 'D 1'"},
		"rule for a part":                {[]fact{excluded, part, rule, notStored}, byRule + "; to index it, delete that id from the configuration, restart tutti, then use: " + command},
		"reason":                         {[]fact{excluded, because, notStored}, "the record is not valid"},
		"reason, stored":                 {[]fact{excluded, because, stored(recordtrace.ComparisonDiffers)}, "the record is not valid; its documents are removed with: " + command},
		"absent":                         {[]fact{absent, notStored}, gone},
		"absent, stored":                 {[]fact{absent, stored(recordtrace.ComparisonDiffers)}, gone + "; its documents are removed with: " + command},
		"other organization":             {[]fact{upstream(recordtrace.StatusOther), notStored}, "the repository has the record under another organization; ask for it there"},
		"upstream error":                 {[]fact{upstream(recordtrace.StatusError), stored(recordtrace.ComparisonUnknown)}, "the repository did not return the record: connection refused; try again when it answers, and see /ready"},
		"index error":                    {[]fact{found, indexStatus(recordtrace.StatusError)}, "the index did not answer: timeout; try again when it does, and see /ready"},
		"upstream not in time":           {[]fact{upstream(recordtrace.StatusUnknown), stored(recordtrace.ComparisonUnknown)}, "the repository did not return the record: no answer within 2s; try again when it answers, and see /ready"},
		"index not in time":              {[]fact{found, indexStatus(recordtrace.StatusUnknown)}, "the index did not answer: timeout; try again when it does, and see /ready"},
		"both errors":                    {[]fact{upstream(recordtrace.StatusError), indexStatus(recordtrace.StatusError)}, "the repository did not return the record: connection refused; try again when it answers, and see /ready"},
		"index error, excluded upstream": {[]fact{excluded, indexStatus(recordtrace.StatusError)}, "the index did not answer: timeout; try again when it does, and see /ready"},
	} {
		t.Run(name, func(t *testing.T) {
			record := recordtrace.Trace{Repository: "song.ca", Organization: "S1", ID: "A 1"}
			for _, f := range tt.facts {
				f(&record)
			}
			if got := why.Next(record); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
