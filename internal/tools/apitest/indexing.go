package apitest

import (
	"net/http"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/fakes"
)

// Paths of a trigger for a repository, an organization and a record.
const (
	RepositoryPath   = "/index/repository/song.ca"
	OrganizationPath = RepositoryPath + "/organization/PACA-CA"
	RecordPath       = OrganizationPath + "/id/A1"
)

// ContentType returns a header with a Content-Type.
func ContentType(v string) http.Header { return http.Header{"Content-Type": {v}} }

// TextType is the Content-Type of a list of ids.
const TextType = "text/plain; charset=utf-8"

// NoLetters answers as where there are none.
func NoLetters() *fakes.Letters { return fakes.New().Letters }

// WithLetters returns ports that all succeed, with dead letters.
func WithLetters(l *fakes.Letters) *Ports {
	p := Working()
	p.Letters = l
	return p
}

// TracedRecord returns a trace with every member.
func TracedRecord(record core.RecordRef) recordtrace.Trace {
	id, expected, at := record.ID(), true, Noon
	job := recordtrace.Job{
		ID: "job-1", Scope: core.ScopeRepository, State: core.JobPartial, OrganizationState: core.JobSucceeded, ErrorCode: core.JobErrorManyInvalid,
		QueuedAt: Noon, EndedAt: &at,
	}
	list := recordtrace.Job{ID: "job-2", Scope: core.ScopeIDs, State: core.JobRunning, Outcome: idlist.Queued, QueuedAt: Noon}
	part := func(status string) recordtrace.Part { return recordtrace.Part{Status: status, TookMillis: 1.5} }
	return recordtrace.Trace{
		Repository: record.Repository(), Organization: record.Organization(), ID: id,
		Upstream: recordtrace.Upstream{
			Part: part(recordtrace.StatusFound), State: "PUBLISHED", IndexedStates: []string{"PUBLISHED"}, SHA256: "ab", Bytes: 2,
		},
		Index: recordtrace.Index{
			Part: part(recordtrace.StatusPresent), Alias: "analyses", Comparison: recordtrace.ComparisonEqual, Truncated: true,
			Documents: []recordtrace.Document{{
				ID: id, Stored: true, Expected: &expected, Version: core.Version(Noon.UnixNano()), WrittenFor: &at,
				PhysicalIndex: "analyses-1", State: "PUBLISHED", SHA256: "ab", Bytes: 2, ExpectedSHA256: "ab", Comparison: recordtrace.ComparisonEqual,
				Content: recordtrace.ComparisonEqual,
			}},
		},
		Queue: recordtrace.Queue{
			Part: part(recordtrace.StatusPending), Batches: 1, Paused: "the index is closed",
			Request: &recordtrace.Request{Kind: core.KindIndex, Cause: core.CauseREST, Attempts: 1, ReceivedAt: Noon, NotBefore: Noon.Add(time.Minute)},
		},
		Jobs: recordtrace.Jobs{Part: part(recordtrace.StatusPresent), InProgress: []recordtrace.Job{list, job}, LastEnded: &job},
		DeadLetters: recordtrace.DeadLetters{Part: recordtrace.Part{Status: recordtrace.StatusUnknown, Error: "no answer within 2s"}, Letters: []recordtrace.DeadLetter{{
			ID: "l1", RecordID: id, Reason: core.ReasonRejected, Hint: "fix it", EngineType: "document_parsing_exception", Attempts: 2, LastAt: Noon,
		}}},
		Next: "wait",
	}
}
