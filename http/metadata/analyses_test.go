package metadata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/tools/apitest"
)

// studyOfAnalyses returns ports whose study has n analyses, each with some more bytes, in the states that are asked for in
// turn; it ends with err after the last one.
func studyOfAnalyses(n, more int, err error) *apitest.Ports {
	return apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.PageFn = func(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
			info := core.PageInfo{Total: n}
			for i := offset; i < n && (limit == 0 || i < offset+limit); i++ {
				a := apitest.NewAnalysis(study, fmt.Sprint("A", i), states[i%len(states)])
				a.Body = append(a.Body[:len(a.Body)-1], `,"more":"`+strings.Repeat("x", more)+`"}`...)
				if err := errors.Join(ctx.Err(), each(a)); err != nil {
					return info, err
				}
				info.Rows++
			}
			return info, err
		}
	})
}

// idsOf returns the ids of a list of analyses.
func idsOf(t *testing.T, body []byte) []string {
	t.Helper()
	var analyses []struct{ AnalysisID string }
	if err := json.Unmarshal(body, &analyses); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	ids := []string{}
	for _, a := range analyses {
		ids = append(ids, a.AnalysisID)
	}
	return ids
}

func TestListAnalyses(t *testing.T) {
	for name, tt := range map[string]struct{ rows, more int }{
		"none": {0, 0}, "one": {1, 0}, "some": {3, 0}, "more than a chunk": {500, 1000}, "one over a chunk": {1, 40 << 10},
		"each over a chunk": {3, 40 << 10}, "the last over a chunk": {2, 20 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			h := apitest.NewHandler(t, studyOfAnalyses(tt.rows, tt.more, nil), api.Config{})
			want := []string{}
			for i := range tt.rows {
				want = append(want, fmt.Sprint("A", i))
			}
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/studies/S/analysis"})
			if diff := cmp.Diff(want, idsOf(t, body)); diff != "" || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s", res.StatusCode, diff)
			}
			if whole := len(body) <= 32<<10; (res.Header.Get("Content-Length") == fmt.Sprint(len(body))) != whole {
				t.Errorf("content length %q of %d", res.Header.Get("Content-Length"), len(body))
			}
			res, body = apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/studies/S/analysis/paginated?limit=2&offset=1"})
			var page struct {
				Analyses                            json.RawMessage
				TotalAnalyses, CurrentTotalAnalyses int
			}
			if err := json.Unmarshal(body, &page); err != nil {
				t.Fatal(err)
			}
			want = want[min(1, len(want)):min(3, len(want))]
			if diff := cmp.Diff(want, idsOf(t, page.Analyses)); diff != "" || res.StatusCode != 200 || page.TotalAnalyses != tt.rows || page.CurrentTotalAnalyses != len(want) {
				t.Errorf("%d %d %d %s", res.StatusCode, page.TotalAnalyses, page.CurrentTotalAnalyses, diff)
			}
		})
	}
}

func TestListAnalysesAsksFor(t *testing.T) {
	const list, page = "/studies/a%2Fb/analysis", "/studies/a%2Fb/analysis/paginated"
	for target, want := range map[string]string{
		list: "a/b [PUBLISHED] 0 0",
		list + "?analysisStates=UNPUBLISHED,SUPPRESSED":                                        "a/b [UNPUBLISHED SUPPRESSED] 0 0",
		list + "?analysisStates=SUPPRESSED&analysisStates=PUBLISHED&analysisStates=SUPPRESSED": "a/b [SUPPRESSED PUBLISHED] 0 0",
		page:                                             "a/b [PUBLISHED] 0 100",
		page + "?limit=1&offset=2147483647":              "a/b [PUBLISHED] 2147483647 1",
		page + "?limit=0&offset=3":                       "a/b [PUBLISHED] 2147483647 1", // past the end: no rows, and the total
		page + "?limit=&offset=&analysisStates=":         "a/b [PUBLISHED] 0 100",
		page + "?limit=10000&analysisStates=UNPUBLISHED": "a/b [UNPUBLISHED] 0 10000",
	} {
		t.Run(target, func(t *testing.T) {
			var got string
			p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
				m.PageFn = func(_ context.Context, study string, states []datamodel.AnalysisState, offset, limit int, _ func(datamodel.Analysis) error) (core.PageInfo, error) {
					got = fmt.Sprint(study, " ", states, " ", offset, " ", limit)
					return core.PageInfo{}, nil
				}
			})
			if res, body := apitest.Do(t, apitest.NewHandler(t, p, api.Config{}), apitest.Ask{Method: "GET", Target: target}); res.StatusCode != 200 || got != want {
				t.Errorf("got %d %s for %q", res.StatusCode, body, got)
			}
		})
	}
}

func TestListOfAStudyThatIsNotThere(t *testing.T) {
	h := apitest.NewHandler(t, studyOfAnalyses(0, 0, &core.Error{Code: core.CodeNotFound, ErrorID: "study.id.does.not.exist", Message: "there is no study S"}), api.Config{})
	for _, target := range []string{"/studies/S/analysis", "/studies/S/analysis/paginated"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
		if p := apitest.WantProblem(t, res, body, 404, "not_found", "there is no study S"); p.ErrorID != "study.id.does.not.exist" {
			t.Errorf("errorId %q", p.ErrorID)
		}
	}
}

// TestListThatFails: while nothing is sent it is a problem, afterwards the connection breaks off, so that no part is taken
// for the whole.
func TestListThatFails(t *testing.T) {
	gone := core.NewError(core.CodeUnavailable, "the database does not answer")
	for _, target := range []string{"/studies/S/analysis", "/studies/S/analysis/paginated?limit=1000"} {
		t.Run("early "+target, func(t *testing.T) {
			res, body := apitest.Do(t, apitest.NewHandler(t, studyOfAnalyses(3, 0, gone), api.Config{}), apitest.Ask{Method: "GET", Target: target})
			apitest.WantProblem(t, res, body, 503, "unavailable", "the database does not answer")
		})
		t.Run("late "+target, func(t *testing.T) {
			_, addr := apitest.Start(t, studyOfAnalyses(200, 1000, gone), api.Config{})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(body) || len(body) == 0 {
				t.Errorf("%v after %d bytes", err, len(body))
			}
		})
	}
}

// TestHeadOfALongList reads no further than it must.
func TestHeadOfALongList(t *testing.T) {
	p := studyOfAnalyses(1_000_000, 1000, nil)
	rows, page := 0, p.Metadata.PageFn
	p.Metadata.PageFn = func(ctx context.Context, study string, states []datamodel.AnalysisState, offset, limit int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
		return page(ctx, study, states, offset, limit, func(a datamodel.Analysis) error {
			rows++
			return each(a)
		})
	}
	s := apitest.Open(t, apitest.NewHandler(t, p, api.Config{}), "HEAD", "/studies/S/analysis", nil)
	<-s.Done
	if s.W.Code != 200 || s.W.Header().Get("Content-Type") != "application/json" || rows > 100 {
		t.Errorf("got %d after %d rows", s.W.Code, rows)
	}
}

// TestListEndsWhenTheClientIsGone: the port is told by its callback or its context.
func TestListEndsWhenTheClientIsGone(t *testing.T) {
	ended := make(chan error, 1)
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.PageFn = func(ctx context.Context, study string, states []datamodel.AnalysisState, _, _ int, each func(datamodel.Analysis) error) (core.PageInfo, error) {
			a := apitest.NewAnalysis(study, "A", states[0])
			for {
				if err := errors.Join(ctx.Err(), each(a)); err != nil {
					ended <- err
					return core.PageInfo{}, err
				}
			}
		}
	})
	_, addr := apitest.Start(t, p, api.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/studies/S/analysis", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = res.Body.Close()
	if err := <-ended; err == nil {
		t.Error("goes on")
	}
}

func TestReadAnalysis(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.AnalysisFn = func(study, id string) (datamodel.Analysis, error) {
			if id == "nobody" {
				return datamodel.Analysis{}, fmt.Errorf("reading: %w", &core.Error{Code: core.CodeNotFound, ErrorID: "analysis.id.not.found", Message: "words of its own"})
			}
			if study == "nobody" {
				return datamodel.Analysis{}, &core.Error{Code: core.CodeNotFound, ErrorID: "study.id.does.not.exist", Message: "there is no study nobody"}
			}
			a := apitest.NewAnalysis(study, id, datamodel.StateSuppressed)
			switch id {
			case "bare":
				a.Body = []byte(`{"analysisId":"bare","studyId":"S","analysisState":"SUPPRESSED","analysisType":{"name":"t","version":1},"files":[]}`)
			case "exact":
				a.Body = []byte(`{"files": [{"fileName":"a", "fileSize":1e3}],"analysisId":"exact","studyId":"S","analysisState":"SUPPRESSED","analysisType":{"name":"t","version":1}}`)
			}
			return a, nil
		}
	})
	h := apitest.NewHandler(t, p, api.Config{})
	for target, want := range map[string]string{
		"/studies/S/analysis/a%2Fb":       string(apitest.NewAnalysis("S", "a/b", datamodel.StateSuppressed).Body),
		"/studies/S/analysis/a%2Fb/files": `[{"fileName":"a/b.vcf","fileSize":1}]`,
		"/studies/S/analysis/bare/files":  `[]`,
		"/studies/S/analysis/exact/files": `[{"fileName":"a", "fileSize":1e3}]`,
	} {
		t.Run(target, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
			if res.StatusCode != 200 || string(body) != want {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
		})
	}
	for target, want := range map[string][2]string{
		"/studies/S/analysis/nobody":       {"analysis.id.not.found", `study "S" has no analysis "nobody"`},
		"/studies/S/analysis/nobody/files": {"analysis.id.not.found", `study "S" has no analysis "nobody"`},
		"/studies/nobody/analysis/A":       {"study.id.does.not.exist", "there is no study nobody"},
	} {
		t.Run(target, func(t *testing.T) {
			res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: target})
			if p := apitest.WantProblem(t, res, body, 404, "not_found", want[1]); p.ErrorID != want[0] {
				t.Errorf("errorId %q", p.ErrorID)
			}
		})
	}
}

// readers knows three tokens: reader, which may read the unpublished analyses of S, writer, which may change them without
// reading, and any, which may do nothing.
type readers struct{}

func (readers) Authenticate(_ context.Context, token string) (core.Principal, error) {
	switch token {
	case "reader":
		return core.Principal{ID: token, Name: token, Scopes: []string{"S.READ"}, Reads: map[string]struct{}{"S": {}}}, nil
	case "writer":
		return core.Principal{ID: token, Name: token, Scopes: []string{"S.WRITE"}, Writes: map[string]struct{}{"S": {}}}, nil
	case "any":
		return core.Principal{ID: token, Name: token}, nil
	default:
		return core.Principal{}, core.NewError(core.CodeUnauthenticated, "the token is unknown")
	}
}

func (readers) SystemScope() string                   { return "tutti.WRITE" }
func (readers) WriteScope(organization string) string { return organization + ".WRITE" }
func (readers) ReadScope(organization string) string  { return organization + ".READ" }

// TestUnpublishedAnalysesAreForReaders: an analysis that a caller may not see is absent in the same words as one that is
// not there, and a list is rejected before the study is looked up.
func TestUnpublishedAnalysesAreForReaders(t *testing.T) {
	p := apitest.WithMetadata(func(m *apitest.MetadataMock) {
		m.AnalysisFn = func(study, id string) (datamodel.Analysis, error) {
			state, known := map[string]datamodel.AnalysisState{
				"published": datamodel.StatePublished, "unpublished": datamodel.StateUnpublished, "suppressed": datamodel.StateSuppressed,
			}[id]
			if !known {
				return datamodel.Analysis{}, &core.Error{Code: core.CodeNotFound, ErrorID: "analysis.id.not.found", Message: "other words"}
			}
			return apitest.NewAnalysis(study, id, state), nil
		}
	})
	h, err := apitest.Assemble(p, api.Config{Authenticator: readers{}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(t *testing.T, token, target string) (int, []byte) {
		t.Helper()
		res, body := apitest.Do(t, apitest.Handler{Router: h}, apitest.Ask{Method: "GET", Target: target, Header: http.Header{"Authorization": {"Bearer " + token}}})
		return res.StatusCode, body
	}
	type statuses map[string]int
	for target, want := range map[string]statuses{
		"/studies/S/analysis/published":                            {"reader": 200, "any": 200, "anonymous": 401},
		"/studies/S/analysis/unpublished":                          {"reader": 200, "writer": 200, "any": 404, "anonymous": 401},
		"/studies/S/analysis/suppressed":                           {"reader": 200, "any": 404, "anonymous": 401},
		"/studies/S/analysis/absent":                               {"reader": 404, "writer": 404, "any": 404, "anonymous": 401},
		"/studies/T/analysis/unpublished":                          {"reader": 404, "writer": 404, "any": 404, "anonymous": 401},
		"/studies/S/analysis/published/files":                      {"reader": 200, "any": 200, "anonymous": 401},
		"/studies/S/analysis/unpublished/files":                    {"reader": 200, "writer": 200, "any": 404, "anonymous": 401},
		"/studies/S/analysis":                                      {"reader": 200, "any": 200, "anonymous": 401},
		"/studies/S/analysis?analysisStates=UNPUBLISHED":           {"reader": 200, "writer": 200, "any": 403, "anonymous": 401},
		"/studies/S/analysis?analysisStates=PUBLISHED,SUPPRESSED":  {"reader": 200, "any": 403, "anonymous": 401},
		"/studies/T/analysis?analysisStates=SUPPRESSED":            {"reader": 403, "any": 403, "anonymous": 401},
		"/studies/S/analysis/paginated":                            {"reader": 200, "any": 200, "anonymous": 401},
		"/studies/S/analysis/paginated?analysisStates=UNPUBLISHED": {"reader": 200, "any": 403, "anonymous": 401},
	} {
		for token, status := range want {
			t.Run(token+" "+target, func(t *testing.T) {
				if got, body := get(t, token, target); got != status {
					t.Errorf("got %d, want %d: %s", got, status, body)
				}
			})
		}
	}
	_, hidden := get(t, "any", "/studies/S/analysis/unpublished")
	_, absent := get(t, "any", "/studies/S/analysis/unpublishex")
	neutral := func(b []byte) []byte {
		var p map[string]any
		if err := json.Unmarshal(bytes.ReplaceAll(b, []byte("unpublishex"), []byte("unpublished")), &p); err != nil {
			t.Fatal(err)
		}
		delete(p, "timestamp")
		same, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return same
	}
	if !bytes.Equal(neutral(hidden), neutral(absent)) {
		t.Errorf("told apart: %s %s", hidden, absent)
	}
}

// TestManyListsAtOnce: streams share nothing.
func TestManyListsAtOnce(t *testing.T) {
	h := apitest.NewHandler(t, studyOfAnalyses(100, 1000, nil), api.Config{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, _, body := apitest.Exchange(t, h, apitest.Ask{Method: "GET", Target: "/studies/S/analysis"})
			var analyses []json.RawMessage
			if err := json.Unmarshal(body, &analyses); err != nil || len(analyses) != 100 {
				t.Errorf("%d: %v", len(analyses), err)
			}
		})
	}
	group.Wait()
}

// TestRefusalsOfTheServerHaveAnErrorID: the path is not known, so they have the members of every surface.
func TestRefusalsOfTheServerHaveAnErrorID(t *testing.T) {
	_, addr := apitest.Start(t, apitest.Working(), api.Config{})
	for raw, want := range map[string]string{
		"GET /studies/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n":                                           "malformed.parameter",
		"GET /studies/all HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": "header.too.large",
	} {
		res, body := apitest.Wire(t, addr, raw)
		if p := apitest.WantProblem(t, res, body, res.StatusCode, map[int]string{400: "invalid", 431: "header_too_large"}[res.StatusCode], ""); p.ErrorID != want ||
			p.Successful == nil || p.Details == nil || p.Message == nil || p.HTTPStatusCode != res.StatusCode {
			t.Errorf("got %s", body)
		}
	}
}
