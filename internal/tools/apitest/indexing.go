package apitest

import (
	"net/http"
	"time"

	"tutti/internal/core"
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
func TracedRecord(record core.RecordRef) core.RecordTrace {
	id, expected, at := record.ID(), true, Noon
	job := core.TraceJob{
		ID: "job-1", Scope: core.ScopeRepository, State: core.JobPartial, OrganizationState: core.JobSucceeded, ErrorCode: core.JobErrorManyInvalid,
		QueuedAt: Noon, EndedAt: &at,
	}
	list := core.TraceJob{ID: "job-2", Scope: core.ScopeIDs, State: core.JobRunning, Outcome: core.IDQueued, QueuedAt: Noon}
	part := func(status string) core.TracePart { return core.TracePart{Status: status, TookMillis: 1.5} }
	return core.RecordTrace{
		Repository: record.Repository(), Organization: record.Organization(), ID: id,
		Upstream: core.TraceUpstream{
			TracePart: part(core.TraceFound), State: "PUBLISHED", IndexedStates: []string{"PUBLISHED"}, SHA256: "ab", Bytes: 2,
		},
		Index: core.TraceIndex{
			TracePart: part(core.TracePresent), Alias: "analyses", Comparison: core.ComparisonEqual, Truncated: true,
			Documents: []core.TraceDocument{{
				ID: id, Stored: true, Expected: &expected, Version: core.Version(Noon.UnixNano()), WrittenFor: &at,
				PhysicalIndex: "analyses-1", State: "PUBLISHED", SHA256: "ab", Bytes: 2, ExpectedSHA256: "ab", Comparison: core.ComparisonEqual,
				Content: core.ComparisonEqual,
			}},
		},
		Queue: core.TraceQueue{
			TracePart: part(core.TracePending), Batches: 1, Paused: "the index is closed",
			Request: &core.TraceRequest{Kind: core.KindIndex, Cause: core.CauseREST, Attempts: 1, ReceivedAt: Noon, NotBefore: Noon.Add(time.Minute)},
		},
		Jobs: core.TraceJobs{TracePart: part(core.TracePresent), InProgress: []core.TraceJob{list, job}, LastEnded: &job},
		DeadLetters: core.TraceDeadLetters{TracePart: core.TracePart{Status: core.TraceUnknown, Error: "no answer within 2s"}, Letters: []core.TraceDeadLetter{{
			ID: "l1", RecordID: id, Reason: core.ReasonRejected, Hint: "fix it", EngineType: "document_parsing_exception", Attempts: 2, LastAt: Noon,
		}}},
		Next: "wait",
	}
}
