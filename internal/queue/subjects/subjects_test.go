package subjects_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tutti/internal/core"
	"tutti/internal/queue/subjects"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		token := subjects.EncodeToken(s)
		if strings.ContainsAny(token, ".*> =+/~") {
			t.Fatalf("token %q of %q", token, s)
		}
		back, err := subjects.DecodeToken(token)
		if err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
	})
	for _, bad := range []string{"a.b", "=", "a", "é", "YR"} {
		if s, err := subjects.DecodeToken(bad); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("DecodeToken(%q) = %q, %v", bad, s, err)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	of := func(scope core.Scope, record, job string) core.Request {
		return core.Request{ID: "r", Kind: core.KindIndex, Scope: scope, Repository: "song", Organization: "S1", RecordID: record, JobID: job, Cause: core.CauseREST}
	}
	page := of(core.ScopePage, "", "job")
	page.Page = &core.Page{Number: 7, Limit: 10}
	repository := of(core.ScopeRepository, "", "job")
	repository.Organization = ""
	for want, r := range map[string]core.Request{
		"tutti.requests.c29uZw.record.UzE.YS5iPg":     of(core.ScopeRecord, "a.b>", ""),
		"tutti.requests.c29uZw.page.am9i.UzE.7":       page,
		"tutti.requests.c29uZw.organization.UzE.am9i": of(core.ScopeOrganization, "", "job"),
		"tutti.requests.c29uZw.repository.am9i":       repository,
	} {
		got, err := subjects.OfRequest(r)
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}
