package console_test

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/http/api"
	"tutti/http/console"
	"tutti/http/metadata"
	"tutti/http/search"
	"tutti/http/system"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/core/idlist"
	"tutti/internal/report/recordtrace"
	"tutti/internal/tools/fakes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// world is the ports of the console.
type world struct {
	*fakes.Ports
	catalogues core.CatalogueSet
	// located are the records of any id.
	located recordtrace.Locations
	meta    metadataWorld
	searchWorld
}

func newWorld() *world {
	letter := core.DeadLetter{
		ID: "l1", Repository: "song.ca", Organization: "S1", RecordID: "r1", Reason: core.ReasonRejected, Hint: "correct the field age",
		EngineReason: "failed to parse field [age] of <b>type</b> long", EngineType: "mapper_parsing_exception", Attempts: 3,
		FirstAt: noon.Add(-time.Hour), LastAt: noon.Add(-time.Minute), Document: []byte(`{"age":"<script>x</script>"}`), Size: 27,
	}
	ended := noon.Add(-time.Minute)
	job := core.Job{
		ID: "j1", Scope: core.ScopeRepository, Repository: "song.ca", IndexName: "analyses", State: core.JobSucceeded, QueuedAt: noon.Add(-time.Hour),
		StartedAt: &ended, EndedAt: &ended, Totals: core.Totals{Expected: 10, Fetched: 10, Indexed: 9, Rejected: 1},
	}
	one := 1
	job.ExpectedOrganizations = &one
	running := job
	running.ID, running.State, running.EndedAt, running.Scope, running.Organization = "j2", core.JobRunning, nil, core.ScopeOrganization, "S1"
	w := &world{
		Ports: fakes.New(),
		catalogues: core.CatalogueSet{Catalogues: []*core.Catalogue{
			{ID: "broken", Problem: &core.CatalogueProblem{Code: core.CatalogueIndexNotFound, Message: "the index does not exist"}},
			{ID: "donors", DocumentType: "donor", DefaultAccess: core.AccessPublic, Fields: donorFields(), GraphQLIntrospection: true},
		}},
		meta: metadataWorld{
			types:   `{"resultSet":[{"name":"variant_call","version":1,"createdAt":"2026-05-01T00:00:00Z"},{"name":"variant_call","version":2,"createdAt":"2026-05-02T00:00:00Z","options":{"fileTypes":["VCF"]}}]}`,
			bodies:  map[int]string{1: `{"schema":{"b":1,"a":2}}`, 2: `{"schema":{"a":3,"b":1},"options":{"fileTypes":["VCF"]}}`},
			studies: map[string]datamodel.Study{"S1": {ID: "S1", Name: "Study one"}},
			analyses: []datamodel.Analysis{
				{ID: "a1", Study: "S1", State: datamodel.StateUnpublished, Body: []byte(`{"analysisType":{"name":"variant_call","version":2},"updatedAt":"2026-05-04T11:00:00Z"}`)},
				{ID: "a2", Study: "S1", State: datamodel.StatePublished, Body: []byte(`{}`)},
			},
		},
		searchWorld: searchWorld{graph: donorGraph},
	}
	w.Statuses = []core.RepositoryStatus{
		{Code: "good", Type: core.TypeLocal, IndexName: "own", State: core.RepositoryOK, LastSuccess: &ended, RepositoryFigures: &core.RepositoryFigures{LastNotification: &ended, RatePerSecond: 1234.4}},
		{
			Code: "song.ca", Type: core.TypeSong, IndexName: "analyses", State: core.RepositoryPaused, Paused: "the repository does not answer",
			RepositoryFigures: &core.RepositoryFigures{DeadLetters: 1, Drift: &core.RepositoryDrift{JobID: "j1", Drift: core.Drift{Missing: 2}}},
		},
	}
	w.Jobs, w.Runs, w.DeadLetters = []core.Job{running, job}, runs(1), []core.DeadLetter{letter}
	w.TraceFn = w.trace
	w.HealthFn = func() system.Health {
		return system.Health{Components: map[string]system.ComponentState{"queue": system.ComponentUp, "index": system.ComponentDown}, Reasons: []string{"index: connection refused"}}
	}
	return w
}

// becomes makes the jobs change to these while one is watched.
func (w *world) becomes(jobs ...core.Job) {
	w.WatchFn = func(ctx context.Context, _ string, each func(core.JobChange) error) error {
		w.Lock()
		w.Jobs = jobs
		w.Unlock()
		err := each(core.JobChange{})
		<-ctx.Done()
		return err
	}
}

// runs returns those of n organizations.
func runs(n int) []core.OrganizationRun {
	runs := make([]core.OrganizationRun, n)
	for i := range runs {
		runs[i] = core.OrganizationRun{Organization: "S" + strconv.Itoa(i+1), State: core.JobRunning, Totals: core.Totals{Expected: 10, Fetched: 4}}
	}
	return runs
}

func (w *world) trace(record core.RecordRef, restricted bool) (recordtrace.Trace, error) {
	t := recordtrace.Trace{Repository: record.Repository(), Organization: record.Organization(), ID: record.ID(), Next: "Wait for the pending request."}
	if restricted {
		t.Next = "restricted"
	}
	t.Upstream.Status, t.Index.Status, t.Queue.Status, t.Jobs.Status, t.DeadLetters.Status = recordtrace.StatusFound, recordtrace.StatusPresent, recordtrace.StatusPending, recordtrace.StatusNone, recordtrace.StatusNone
	t.Queue.Request = &recordtrace.Request{Kind: core.KindIndex, Cause: core.CauseREST, ReceivedAt: noon}
	t.Upstream.ExcludedBy = &core.Exclusion{List: "donors", ID: "DO1"}
	t.Jobs.InProgress = []recordtrace.Job{{ID: "j2", Scope: core.ScopeIDs, State: core.JobRunning, Outcome: idlist.DeadLettered}}
	t.Index.Documents = []recordtrace.Document{{
		ID: record.ID(), Stored: true, WrittenFor: &noon, State: "PUBLISHED", SHA256: "ab12", ExpectedSHA256: "cd34",
		Comparison: recordtrace.ComparisonDiffers, Content: recordtrace.ComparisonEqual,
	}}
	return t, w.Err
}

func (w *world) Locate(context.Context, string) (recordtrace.Locations, error) {
	return w.located, w.Err
}

func (w *world) Catalogues() *core.CatalogueSet { return &w.catalogues }

func (w *world) Validate(_ context.Context, _, payload string) (datamodel.AnalysisTypeRef, error) {
	w.Note("validate")
	if strings.Contains(payload, "wrong") {
		return datamodel.AnalysisTypeRef{}, &core.Error{
			Code: core.CodeInvalid, Message: "the analysis does not match its type",
			Violations: []core.Violation{{Pointer: "/samples/1/id", Message: "must be a string", Keyword: "type"}, {Pointer: "", Message: "lacks x", Keyword: "required"}},
		}
	}
	return datamodel.AnalysisTypeRef{Name: "variant_call", Version: 2}, nil
}

// tokens verifies three tokens.
type tokens struct{}

func (tokens) Authenticate(_ context.Context, token string) (core.Principal, error) {
	switch token {
	case "system":
		return core.Principal{ID: "key:1", Name: "root", System: true, Scopes: []string{"tutti.WRITE"}}, nil
	case "s1":
		return core.Principal{ID: "key:2", Name: "writer of S1", Scopes: []string{"S1.WRITE"}, Writes: map[string]struct{}{"S1": {}}}, nil
	case "none":
		return core.Principal{ID: "key:3", Name: "reader"}, nil
	default:
		return core.Principal{}, core.NewError(core.CodeUnauthenticated, "the token has expired")
	}
}

func (tokens) SystemScope() string        { return "tutti.WRITE" }
func (tokens) WriteScope(o string) string { return o + ".WRITE" }
func (tokens) ReadScope(o string) string  { return o + ".READ" }

func router(t *testing.T, w *world, cfg api.Config) *api.Router {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return noon }
	}
	w.meta.called = w.Note
	searches := search.New(search.Ports{Catalogues: w, GraphQL: w, Downloads: w})
	pages, err := console.New(console.Ports{
		Indexing:  w.Indexing(),
		Metadata:  metadata.Ports{AnalysisTypes: &w.meta, Studies: &w.meta, Analyses: &w.meta, Submissions: &w.meta, NotIndexed: w.meta.notIndexed},
		Search:    search.Ports{Catalogues: w, GraphQL: w, Downloads: w},
		Readiness: w, Validator: w, Records: w,
	}, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	searches.ShowQueries(pages.QueryPage)
	r, err := api.New(cfg, searches, pages)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// request is one request of a browser.
type request struct {
	method, path string
	form         url.Values
	token        string
	header       http.Header
}

// acceptPage is the header Accept of a browser that opens a page.
const acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

func send(t *testing.T, h http.Handler, q request) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), q.method, "http://localhost"+q.path, strings.NewReader(q.form.Encode()))
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if q.token != "" {
		r.AddCookie(&http.Cookie{Name: "tutti_console", Value: q.token})
	}
	maps.Copy(r.Header, q.header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// pageCase is one page that exists, and a text on it.
type pageCase struct{ path, says string }

func pages() []pageCase {
	return []pageCase{
		{"/", "1 component does not work as it should, 1 repository is not being indexed"},
		{"/console/sign-in", "Authentication is off"},
		{"/console/jobs", "/console/jobs/j2"},
		{"/console/jobs?state=succeeded", "/console/jobs/j1"},
		{"/console/jobs/j1", "10 of 10 fetched"},
		{"/console/jobs/j2", `sse-connect="`},
		{"/console/dead-letters", "failed to parse field [age] of &lt;b&gt;type&lt;/b&gt; long"},
		{"/console/dead-letters?reason=too_large", "No dead letters match"},
		{"/console/dead-letters/l1", "&lt;script&gt;x&lt;/script&gt;"},
		{"/console/dead-letters/l1/discard", "This cannot be undone"},
		{"/console/records", "Which record?"},
		{"/console/records?repository=song.ca&organization=S1&id=r1", "Wait for the pending request."},
		{"/console/records?repository=song.ca&organization=S1&id=r1", `by <span class="mono">DO1</span> in exclude.donors`},
		{"/console/records?repository=song.ca&organization=S1&id=r1", "Running, a list of ids with this one: Dead-lettered"},
		{"/console/records?repository=song.ca&organization=S1&id=r1", "in the repositories block only"},
		{"/console/records?repository=song.ca&organization=S1&id=r1", `ab12 <span class="muted">expected cd34</span>`},
		{"/console/records?id=r9", "No record with this id was found"},
		{"/console/catalogues", "index_not_found"},
		{"/console/catalogues/donors", "42"},
		{"/console/catalogues/broken", "This catalogue cannot be searched"},
		{"/console/catalogues/donors/explore?in.sex=male&from.age=3&q=x&column=age&column=visits.id&sort=age&order=desc", "Remove the filter </span>Sex: male"},
		{"/console/catalogues/donors/document?id=d1", "Trace of the record"},
		{"/donors/graphql", `data-endpoint="`},
		{"/console/schemas", "/console/schemas/variant_call?version=2&amp;compare=1"},
		{"/console/schemas?from=variant_call", "{\n  &#34;name&#34;: &#34;variant_call&#34;,\n  &#34;options&#34;: {\n    &#34;fileTypes&#34;: [\n      &#34;VCF&#34;"},
		{"/console/schemas/variant_call", "Schema of version 2"},
		{"/console/schemas/variant_call?version=2&compare=1", `<li class="added"><span class="no">2</span><span>+<span class="hidden"> added: </span></span><span>  &#34;a&#34;: 3,</span></li>`},
		{"/console/studies", "/console/studies/S1"},
		{"/console/studies/S1", "/console/studies/S1/analyses/a1/publish"},
		{"/console/studies/S1/analyses/a2/suppress", "Suppress this analysis?"},
	}
}

// actionCase is one action, who may use it, and what it calls.
type actionCase struct {
	path  string
	form  url.Values
	may   []string
	calls string
	to    string
}

func actions() []actionCase {
	system, writers := []string{"system"}, []string{"system", "s1"}
	return []actionCase{
		{"/console/repositories/song.ca/index", nil, system, "run repository song.ca  {Force:false Rebuild:false Difference:false}", "/console/jobs/job-1?notice=queued"},
		{"/console/repositories/song.ca/index", url.Values{"difference": {"true"}}, system, "run repository song.ca  {Force:false Rebuild:false Difference:true}", "/console/jobs/job-1?notice=queued"},
		{"/console/jobs/j2/cancel", nil, writers, "cancel j2", "/console/jobs/j2?notice=cancelled"},
		{"/console/dead-letters/l1/retry", nil, writers, "retry l1", "/console/dead-letters?notice=retried"},
		{"/console/dead-letters/l1/discard", nil, system, "discard l1", "/console/dead-letters?notice=discarded"},
		{"/console/dead-letters/retry", url.Values{"repository": {"song.ca"}, "organization": {"S1"}}, system, "retry-all song.ca S1 ", "/console/jobs/job-2?notice=retried-all"},
		{
			"/console/records/index",
			url.Values{"repository": {"song.ca"}, "organization": {"S1"}, "id": {"r1"}},
			writers, "index song.ca S1 r1",
			"/console/records?id=r1&organization=S1&repository=song.ca&notice=record",
		},
		{"/console/studies", url.Values{"study": {"S2"}, "name": {"Two"}}, system, "create S2 Two", "/console/studies/S2?notice=study-added"},
		{"/console/studies/S1/submit", url.Values{"payload": {"{}"}}, writers, "submit S1", "/console/studies/S1?notice=submitted"},
		{"/console/studies/S1/analyses/a1/publish", nil, writers, "set S1 a1 PUBLISHED", "/console/studies/S1?notice=published"},
		{"/console/studies/S1/analyses/a2/suppress", nil, writers, "set S1 a2 SUPPRESSED", "/console/studies/S1?notice=suppressed"},
		{"/console/schemas", url.Values{"registration": {" {} "}}, system, "register {}", "/console/schemas/variant_call?notice=registered"},
		{"/console/studies/S1/analyses/a2/unpublish", nil, writers, "set S1 a2 UNPUBLISHED", "/console/studies/S1?notice=unpublished"},
	}
}

// readVendored returns the content of a file of others, which may be stored packed.
func readVendored(file string) ([]byte, error) {
	packed, err := os.Open(file + ".gz")
	if err != nil {
		return os.ReadFile(file)
	}
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// TestVendoredFiles: the files of others are those whose checksums are listed, and no other.
func TestVendoredFiles(t *testing.T) {
	for _, dir := range []string{"assets/vendor", "testdata"} {
		list, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for line := range strings.Lines(string(list)) {
			sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			content, err := readVendored(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
				t.Errorf("%s/%s was changed", dir, name)
			}
			listed = append(listed, name)
		}
		for _, pattern := range []string{"*.js", "*.css", "*.gz"} {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, file := range found {
				if !slices.Contains(listed, strings.TrimSuffix(filepath.Base(file), ".gz")) {
					t.Errorf("%s has no checksum", file)
				}
			}
		}
	}
}
