package indexing_test

import (
	"fmt"
	"net/http"
	"testing"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/apitest"
)

// TestTrace: the path names the record, an unknown repository is 404, and the answer is what the document describes, with every member.
func TestTrace(t *testing.T) {
	p := apitest.Working()
	var call string
	p.TraceFn = func(record core.RecordRef, restricted bool) (recordtrace.Trace, error) {
		call = fmt.Sprint(record.Repository(), " ", record.Organization(), " ", record.ID(), " ", restricted)
		if record.Repository() == "other" {
			return recordtrace.Trace{}, core.NewError(core.CodeNotFound, `repository "other" is not configured`)
		}
		return apitest.TracedRecord(record), nil
	}
	h := apitest.NewHandler(t, p, api.Config{})
	res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: apitest.OrganizationPath + "/id/a%2Fb"})
	if res.StatusCode != http.StatusOK || call != "song.ca PACA-CA a/b false" {
		t.Errorf("%d %s, called %q", res.StatusCode, body, call)
	}
	res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/index/repository/other/organization/S1/id/a"})
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown repository: %d %s", res.StatusCode, body)
	}
}

// TestTraceRestricted: a caller without the system's scope gets a restricted trace.
func TestTraceRestricted(t *testing.T) {
	d := apitest.NewTokenIssuer(t, &apitest.MemoryKeyStore{})
	p := apitest.OfS1()
	got := map[bool]int{}
	p.TraceFn = func(record core.RecordRef, restricted bool) (recordtrace.Trace, error) {
		got[restricted]++
		return apitest.TracedRecord(record), nil
	}
	h := apitest.GuardedHandler(t, p, d, api.Config{})
	for right, restricted := range map[string]bool{apitest.WriteRight: true, apitest.SystemRight: false} {
		clear(got)
		res := apitest.RequestWith(t, h, "GET", "/index/repository/song.ca/organization/S1/id/a", d.Header(right))
		if res.StatusCode != http.StatusOK || got[restricted] != 1 {
			t.Errorf("%s: %d, %v", right, res.StatusCode, got)
		}
	}
}
