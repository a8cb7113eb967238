package http_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
)

// tracedRecord returns a trace with every member.
func tracedRecord(record core.RecordRef) core.RecordTrace {
	id, expected, at := record.ID(), true, noon
	job := core.TraceJob{
		ID: "job-1", Scope: core.ScopeRepository, State: core.JobPartial, OrganizationState: core.JobSucceeded, ErrorCode: core.JobErrorManyInvalid,
		QueuedAt: noon, EndedAt: &at,
	}
	list := core.TraceJob{ID: "job-2", Scope: core.ScopeIDs, State: core.JobRunning, Outcome: core.IDQueued, QueuedAt: noon}
	part := func(status string) core.TracePart { return core.TracePart{Status: status, TookMillis: 1.5} }
	return core.RecordTrace{
		Repository: record.Repository(), Organization: record.Organization(), ID: id,
		Upstream: core.TraceUpstream{
			TracePart: part(core.TraceFound), State: "PUBLISHED", IndexedStates: []string{"PUBLISHED"}, SHA256: "ab", Bytes: 2,
		},
		Index: core.TraceIndex{
			TracePart: part(core.TracePresent), Alias: "analyses", Comparison: core.ComparisonEqual, Truncated: true,
			Documents: []core.TraceDocument{{
				ID: id, Stored: true, Expected: &expected, Version: core.Version(noon.UnixNano()), WrittenFor: &at,
				PhysicalIndex: "analyses-1", State: "PUBLISHED", SHA256: "ab", Bytes: 2, ExpectedSHA256: "ab", Comparison: core.ComparisonEqual,
				Content: core.ComparisonEqual,
			}},
		},
		Queue: core.TraceQueue{
			TracePart: part(core.TracePending), Batches: 1, Paused: "the index is closed",
			Request: &core.TraceRequest{Kind: core.KindIndex, Cause: core.CauseREST, Attempts: 1, ReceivedAt: noon, NotBefore: noon.Add(time.Minute)},
		},
		Jobs: core.TraceJobs{TracePart: part(core.TracePresent), InProgress: []core.TraceJob{list, job}, LastEnded: &job},
		DeadLetters: core.TraceDeadLetters{TracePart: core.TracePart{Status: core.TraceUnknown, Error: "no answer within 2s"}, Letters: []core.TraceDeadLetter{{
			ID: "l1", RecordID: id, Reason: core.ReasonRejected, Hint: "fix it", EngineType: "document_parsing_exception", Attempts: 2, LastAt: noon,
		}}},
		Next: "wait",
	}
}

// TestTrace: the path names the record, an unknown repository is 404, and the answer is what the document describes, with every member.
func TestTrace(t *testing.T) {
	p := working()
	var call string
	p.TraceFn = func(record core.RecordRef, restricted bool) (core.RecordTrace, error) {
		call = fmt.Sprint(record.Repository(), " ", record.Organization(), " ", record.ID(), " ", restricted)
		if record.Repository() == "other" {
			return core.RecordTrace{}, core.NewError(core.CodeNotFound, `repository "other" is not configured`)
		}
		return tracedRecord(record), nil
	}
	h := newHandler(t, p, api.Config{})
	res, body := do(t, h, ask{method: "GET", target: organizationPath + "/id/a%2Fb"})
	if res.StatusCode != http.StatusOK || call != "song.ca PACA-CA a/b false" {
		t.Errorf("%d %s, called %q", res.StatusCode, body, call)
	}
	res, body = do(t, h, ask{method: "GET", target: "/index/repository/other/organization/S1/id/a"})
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown repository: %d %s", res.StatusCode, body)
	}
}

// TestTraceRestricted: a caller without the system's scope gets a restricted trace.
func TestTraceRestricted(t *testing.T) {
	d := newTokenIssuer(t, &memoryKeyStore{})
	p := ofS1()
	got := map[bool]int{}
	p.TraceFn = func(record core.RecordRef, restricted bool) (core.RecordTrace, error) {
		got[restricted]++
		return tracedRecord(record), nil
	}
	h := guardedHandler(t, p, d, api.Config{})
	for right, restricted := range map[string]bool{writeRight: true, systemRight: false} {
		clear(got)
		res := requestWith(t, h, "GET", "/index/repository/song.ca/organization/S1/id/a", d.header(right))
		if res.StatusCode != http.StatusOK || got[restricted] != 1 {
			t.Errorf("%s: %d, %v", right, res.StatusCode, got)
		}
	}
}
