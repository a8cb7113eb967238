package fromsong_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/metadata/fromsong"
	"tutti/internal/store"
	"tutti/internal/store/connection"
	"tutti/internal/tools/storetest"
)

// anyType accepts every analysis.
type anyType struct{}

func (anyType) Validate(context.Context, string, string) (datamodel.AnalysisTypeRef, error) {
	return datamodel.AnalysisTypeRef{Name: "variantCall", Version: 1}, nil
}

func (anyType) CheckVersion(context.Context, datamodel.AnalysisTypeRef) error { return nil }

// target is a built-in repository in a store.
type target struct {
	*metadata.Repository

	t     *testing.T
	store *store.Store
}

func newTarget(t *testing.T, s *store.Store) target {
	t.Helper()
	r, err := metadata.New(s, anyType{}, metadata.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return target{r, t, s}
}

// run copies from a source.
func (w target) run(from fromsong.Source) *fromsong.Report {
	w.t.Helper()
	report, err := fromsong.Run(w.t.Context(), from, w, w.store, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

func (w target) body(study, id string) string {
	w.t.Helper()
	a, err := w.Analysis(w.t.Context(), study, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(a.Body)
}

// memory is a Song in memory.
type memory struct {
	studies  []datamodel.Study
	types    []datamodel.AnalysisType
	analyses []datamodel.ImportedAnalysis
	// failAfter ends the reading of analyses with an error after that many, unless it is 0.
	failAfter int
}

func (m *memory) Studies(context.Context) ([]datamodel.Study, error)      { return m.studies, nil }
func (m *memory) Types(context.Context) ([]datamodel.AnalysisType, error) { return m.types, nil }
func (m *memory) Close(context.Context) error                             { return nil }

func (m *memory) Analyses(_ context.Context, study string, each func([]datamodel.ImportedAnalysis) error) (int, error) {
	n := 0
	for _, a := range m.analyses {
		if a.Study != study {
			continue
		}
		if n++; m.failAfter > 0 && n > m.failAfter {
			return 0, core.NewError(core.CodeUnavailable, "the connection broke")
		}
		if err := each([]datamodel.ImportedAnalysis{a}); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

var day = time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)

func analysis(id string, state datamodel.AnalysisState) datamodel.ImportedAnalysis {
	return datamodel.ImportedAnalysis{
		ID: id, Study: "S", State: state, Type: datamodel.AnalysisTypeRef{Name: "variantCall", Version: 1}, CreatedAt: day, UpdatedAt: day.Add(time.Hour),
		Data: json.RawMessage(`{"experiment":{"tool":"x"}}`),
		Files: []json.RawMessage{json.RawMessage(`{"objectId":"o-` + id + `","fileName":"f","fileSize":1,"fileMd5sum":"` +
			strings.Repeat("A", 32) + `","fileAccess":"open"}`)},
	}
}

func small() *memory {
	return &memory{
		studies: []datamodel.Study{{ID: "S", Name: "Study", Info: json.RawMessage(`{"a":1}`)}, {ID: "has spaces"}},
		types: []datamodel.AnalysisType{
			{Name: "variantCall", Version: 1, CreatedAt: day, Schema: json.RawMessage(`{"type":"object"}`)},
			{Name: "gap", Version: 2, CreatedAt: day, Schema: json.RawMessage(`{}`)},
			{Name: "variantCall", Version: 2, CreatedAt: day, Schema: json.RawMessage(`{"type":"object","required":["a"]}`)},
		},
		analyses: []datamodel.ImportedAnalysis{
			analysis("a1", datamodel.StateUnpublished), analysis("a2", datamodel.StatePublished), analysis("a3", datamodel.StateSuppressed),
		},
	}
}

// TestRun: a second run changes nothing, and one after an interruption completes the first.
// TestAdviceOnTypes: a type that tutti has with another schema ends a migration, with a hint; into a store without types it ends well.
func TestAdviceOnTypes(t *testing.T) {
	other := small()
	other.types[0].Schema = []byte(`{"type":"object","title":"another"}`)
	from := newTarget(t, storetest.Open(t))
	from.run(other)
	_, err := fromsong.Run(t.Context(), small(), from, from.store, nil)
	if hint := core.HintOf(err); core.CodeOf(err) != core.CodeConflict || hint != "migrate into a store without analysis types; do not set schemas.seed before" {
		t.Errorf("%v, hint %q", err, hint)
	}
	newTarget(t, storetest.Open(t)).run(small())
}

// TestDatabaseThatIsNotThere: what to check for a database that cannot be opened.
func TestDatabaseThatIsNotThere(t *testing.T) {
	_, err := fromsong.OpenDatabase(t.Context(), connection.Settings{URL: "postgres://song:s3cret@127.0.0.1:1/song", URLKey: "--from", TLS: tlsconfig.Files{Flags: true}}, time.UTC)
	if hint := core.HintOf(err); core.CodeOf(err) != core.CodeUnavailable || hint != "check the address, the user, the password and the name of the database" {
		t.Errorf("%v, hint %q", err, hint)
	}
}

func TestRun(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		w, from := newTarget(t, s), small()
		from.analyses = append(from.analyses, datamodel.ImportedAnalysis{
			ID: "a4", Study: "S", State: datamodel.StatePublished, Type: datamodel.AnalysisTypeRef{Name: "gap", Version: 2}, Data: json.RawMessage(`{}`),
		})
		from.failAfter = 2
		report, err := fromsong.Run(t.Context(), from, w, s, nil)
		if core.CodeOf(err) != core.CodeUnavailable || report.Analyses[datamodel.ImportAdded] != 2 {
			t.Fatalf("%+v, %v", report, err)
		}
		from.failAfter = 0
		report = w.run(from)
		want := &fromsong.Report{
			Studies: 2, Types: 3, Files: 3,
			Analyses: map[datamodel.ImportResult]int{datamodel.ImportAdded: 1, datamodel.ImportEqual: 2, datamodel.ImportSkipped: 1},
			States:   map[datamodel.AnalysisState]int{datamodel.StateUnpublished: 1, datamodel.StatePublished: 1, datamodel.StateSuppressed: 1},
			Skipped: []string{
				"analysis type gap, version 2: the version before it is missing",
				"analysis a4: version 2 of its type gap was not copied",
				"study has spaces with its analyses: the id of a study must start with a letter or a digit and contain only letters, digits, dots, underscores and hyphens",
			},
		}
		if diff := cmp.Diff(want, report); diff != "" || report.Complete() {
			t.Error(diff)
		}
		if study, err := w.Study(t.Context(), "S"); err != nil || string(study.Info) != `{"a":1}` {
			t.Errorf("%+v, %v", study, err)
		}
		if v, err := s.AnalysisType(t.Context(), "variantCall", 0); err != nil || v.Version != 2 || !v.CreatedAt.Equal(day) {
			t.Errorf("%+v, %v", v, err)
		}
		if n, err := w.Pending(t.Context()); err != nil || n != 0 {
			t.Errorf("%d events, %v", n, err)
		}
		from.types[2].Schema = json.RawMessage(`{"required": ["\u0061"], "type": "object"}`)
		if report := w.run(from); report.TypesAdded != 0 {
			t.Errorf("a schema in another notation: %+v", report)
		}
		from.types[0].Schema = json.RawMessage(`{"type":"array"}`)
		if _, err := fromsong.Run(t.Context(), from, w, s, nil); core.CodeOf(err) != core.CodeConflict {
			t.Errorf("another schema: %v", err)
		}
	})
}

// TestChanges: what has changed in Song is replaced, unless it has changed in tutti.
func TestChanges(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		w, from := newTarget(t, s), small()
		w.run(from)
		if err := w.SetState(t.Context(), "S", "a1", datamodel.StatePublished, false); err != nil {
			t.Fatal(err)
		}
		if r := w.run(from); r.Analyses[datamodel.ImportKept] != 1 || r.Analyses[datamodel.ImportEqual] != 2 {
			t.Errorf("%+v", r.Analyses)
		}
		before := w.body("S", "a2")
		from.analyses[0].UpdatedAt = day.Add(2 * time.Hour)                                                                      // a1, changed in both
		from.analyses[1].Files[0] = json.RawMessage(strings.Replace(string(from.analyses[1].Files[0]), "open", "controlled", 1)) // a2, without a new time
		r := w.run(from)
		if r.Analyses[datamodel.ImportConflict] != 1 || r.Analyses[datamodel.ImportUpdated] != 1 || len(r.Skipped) != 3 {
			t.Errorf("%+v %v", r.Analyses, r.Skipped)
		}
		after := w.body("S", "a2")
		if gjson.Get(after, "files.0.fileAccess").Str != "controlled" || gjson.Get(after, "updatedAt").Str <= gjson.Get(before, "updatedAt").Str {
			t.Errorf("%s after %s", after, before)
		}
		if gjson.Get(w.body("S", "a1"), "analysisState").Str != "PUBLISHED" {
			t.Error(w.body("S", "a1"))
		}
		if r := w.run(from); r.Analyses[datamodel.ImportEqual] != 2 || r.Analyses[datamodel.ImportConflict] != 1 {
			t.Errorf("%+v", r.Analyses)
		}
		if e, err := w.Entity(t.Context(), "o-a2"); err != nil || e.Access != "controlled" {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// TestKept: an analysis that has changed in tutti stays, and is reported when Song has changed its files too, which Song does without
// a new time. An analysis of another study is never replaced.
func TestKept(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		w, from := newTarget(t, s), small()
		w.run(from)
		from.analyses[0].UpdatedAt = day.Add(2 * time.Hour) // only the time
		if r := w.run(from); r.Analyses[datamodel.ImportEqual] != 3 {
			t.Errorf("%+v", r.Analyses)
		}
		if err := w.SetState(t.Context(), "S", "a1", datamodel.StatePublished, false); err != nil {
			t.Fatal(err)
		}
		if r := w.run(from); r.Analyses[datamodel.ImportKept] != 1 || r.Analyses[datamodel.ImportEqual] != 2 {
			t.Errorf("%+v", r.Analyses)
		}
		from.analyses[0].Files[0] = json.RawMessage(strings.Replace(string(from.analyses[0].Files[0]), "open", "controlled", 1))
		if r := w.run(from); r.Analyses[datamodel.ImportConflict] != 1 || r.Analyses[datamodel.ImportEqual] != 2 {
			t.Errorf("%+v", r.Analyses)
		}
		from.studies = append(from.studies, datamodel.Study{ID: "T"})
		from.analyses[1].Study = "T"
		if r := w.run(from); r.Analyses[datamodel.ImportConflict] != 2 {
			t.Errorf("%+v", r.Analyses)
		}
		if study := gjson.Get(w.body("S", "a2"), "studyId").Str; study != "S" {
			t.Errorf("a2 is of study %s", study)
		}
	})
}

// TestImported: an analysis has the times, history and ids of Song; what cannot be stored is skipped with its reason.
func TestImported(t *testing.T) {
	w, from := newTarget(t, storetest.Open(t)), small()
	a := &from.analyses[1]
	a.Data = json.RawMessage(`{"files":[5],"studyId":"x","experiment":{"n":1.50}, "samples":[{"submitterSampleId":"SA"}]}`)
	a.Files = append(a.Files, a.Files[0]) // the same name twice
	a.History = []datamodel.StateChange{
		{From: datamodel.StateUnpublished, To: datamodel.StatePublished, At: day.Add(30 * time.Hour)},
		{From: datamodel.StateUnpublished, To: datamodel.StatePublished, At: day.Add(10 * time.Hour)},
		{From: datamodel.StatePublished, To: datamodel.StateUnpublished, At: day.Add(20 * time.Hour)},
	}
	from.analyses[0].Files[0] = json.RawMessage(`{"fileName":"f"}`)
	from.analyses[2].State = "LOST"
	broken := analysis("a4", datamodel.StatePublished)
	broken.History = []datamodel.StateChange{{From: datamodel.StateUnpublished, To: `"`, At: day}}
	from.analyses = append(from.analyses, broken)
	r := w.run(from)
	if r.Analyses[datamodel.ImportSkipped] != 3 || r.Analyses[datamodel.ImportAdded] != 1 || r.StateChanges != 3 || len(r.Skipped) != 5 {
		t.Errorf("%+v", r)
	}
	file := `{"objectId":"o-a2","studyId":"S","analysisId":"a2","fileName":"f","fileSize":1,"fileMd5sum":"` + strings.Repeat("A", 32) + `","fileAccess":"open"}`
	want := `{"analysisId":"a2","studyId":"S","analysisState":"PUBLISHED","createdAt":"2024-03-01T12:00:00.000000Z","updatedAt":"2024-03-02T18:00:00.000000Z",` +
		`"firstPublishedAt":"2024-03-01T22:00:00.000000Z","publishedAt":"2024-03-02T18:00:00.000000Z","analysisStateHistory":[` +
		`{"initialState":"UNPUBLISHED","updatedState":"PUBLISHED","updatedAt":"2024-03-01T22:00:00.000000Z"},` +
		`{"initialState":"PUBLISHED","updatedState":"UNPUBLISHED","updatedAt":"2024-03-02T08:00:00.000000Z"},` +
		`{"initialState":"UNPUBLISHED","updatedState":"PUBLISHED","updatedAt":"2024-03-02T18:00:00.000000Z"}],` +
		`"analysisType":{"name":"variantCall","version":1},"experiment":{"n":1.50},"samples":[{"submitterSampleId":"SA"}],"files":[` + file + `,` + file + `]}`
	if diff := cmp.Diff(want, w.body("S", "a2")); diff != "" {
		t.Error(diff)
	}
	if err := w.SetState(t.Context(), "S", "a2", datamodel.StateUnpublished, false); err != nil || !strings.Contains(w.body("S", "a2"), `"objectId":"o-a2"`) {
		t.Errorf("%v %s", err, w.body("S", "a2"))
	}
}

// TestServer reads a Song through its routes.
func TestServer(t *testing.T) {
	const total = 120
	var token string
	failed := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		if !failed[r.URL.String()] && (r.URL.Path == "/song/studies/all" || r.URL.Query().Get("offset") == "100") {
			failed[r.URL.String()] = true // once
			if r.URL.Path == "/song/studies/all" {
				rw.WriteHeader(http.StatusBadGateway)
				return
			}
			rw.Header().Set("Content-Length", "100")
			_, _ = rw.Write([]byte(`{"analyses":[`)) // and no more
			return
		}
		offset := r.URL.Query().Get("offset")
		switch path := strings.TrimPrefix(r.URL.Path, "/song"); {
		case path == "/studies/all":
			_, _ = rw.Write([]byte(`["S"]`))
		case path == "/studies/S":
			_, _ = rw.Write([]byte(`{"studyId":"S","name":"Study","organization":null,"description":null,"info":{}}`))
		case path == "/schemas" && offset == "0" && r.URL.Query().Get("unrenderedOnly") == "true" && r.URL.Query().Get("sortOrder") == "ASC":
			_, _ = rw.Write([]byte(`{"count":1,"resultSet":[{"name":"variantCall","version":1,"createdAt":"2024-03-01T12:00:00","schema":{"type":"object"},"options":{"fileTypes":["VCF"],"externalValidations":null}}]}`))
		case path == "/studies/S/analysis/paginated" && r.URL.Query().Get("analysisStates") == "PUBLISHED,UNPUBLISHED,SUPPRESSED":
			var list []string
			var from int
			_, _ = fmt.Sscan(offset, &from)
			for i := from; i < min(from+100, total); i++ {
				if i == 7 {
					continue // has no files: Song counts it and leaves it out
				}
				list = append(list, fmt.Sprintf(`{"analysisId":"a%03d","studyId":"S","analysisState":"PUBLISHED","createdAt":"2024-03-01T13:00:00.5","updatedAt":"2024-03-01T13:00:00.5Z",
					"firstPublishedAt":"2024-03-01T14:00:00","publishedAt":null,"analysisStateHistory":[{"initialState":"UNPUBLISHED","updatedState":"PUBLISHED","updatedAt":"2024-03-01T14:00:00"}],
					"analysisType":{"name":"variantCall","version":1},"samples":[],"files":[{"objectId":"o%d","studyId":"S","analysisId":"a%03d","fileName":"f","fileMd5sum":"x","info":{}}],"experiment":{}}`, i, i, i))
			}
			_, _ = fmt.Fprintf(rw, `{"analyses":[%s],"totalAnalyses":%d,"currentTotalAnalyses":%d}`, strings.Join(list, ","), total, len(list))
		default:
			rw.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	from, err := fromsong.OpenServer(server.URL+"/song/", "secret", tlsconfig.Files{}, time.FixedZone("x", 3600))
	if err != nil {
		t.Fatal(err)
	}
	w := newTarget(t, storetest.Open(t))
	r := w.run(from)
	if r.Analyses[datamodel.ImportAdded] != total-1 || r.Missing != 1 || r.Complete() || len(r.Skipped) != 0 || token != "Bearer secret" {
		t.Errorf("%+v %s", r, token)
	}
	body := w.body("S", "a119")
	for path, want := range map[string]string{
		"createdAt": "2024-03-01T12:00:00.500000Z", "updatedAt": "2024-03-01T13:00:00.500000Z", "firstPublishedAt": "2024-03-01T13:00:00.000000Z",
		"files.0.objectId": "o119", "files.0.info": "{}", "experiment": "{}", "samples": "[]", "analysisType.version": "1",
	} {
		if got := gjson.Get(body, path).String(); got != want {
			t.Errorf("%s is %s in %s", path, got, body)
		}
	}
	if v, err := w.store.AnalysisType(t.Context(), "variantCall", 1); err != nil || len(v.Options.FileTypes) != 1 || !v.CreatedAt.Equal(day.Add(-time.Hour)) {
		t.Errorf("%+v, %v", v, err)
	}
	if r := w.run(from); r.Analyses[datamodel.ImportEqual] != total-1 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"song.example.org", "http://user:pass@song", "http://%zz"} {
		if _, err := fromsong.OpenServer(bad, "", tlsconfig.Files{}, time.UTC); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	broken, err := fromsong.OpenServer(server.URL+"/other", "", tlsconfig.Files{}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fromsong.Run(t.Context(), broken, w, w.store, nil); core.CodeOf(err) != core.CodeUpstream || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

// TestSecuredServer: the files of TLS are used for the routes too, and the flag to change is named.
func TestSecuredServer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "[]") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		files         tlsconfig.Files
		message, hint string
	}{
		"right":     {tlsconfig.Files{Flags: true, CAFile: ca}, "an internal error occurred", ""},
		"authority": {tlsconfig.Files{Flags: true}, "Song does not answer: its certificate is signed by an unknown authority", "set --ca-file to"},
		"name":      {tlsconfig.Files{Flags: true, CAFile: ca, ServerName: "x.test"}, "Song does not answer: its certificate is for another host name", "set --server-name to"},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := fromsong.OpenServer(server.URL, "", tt.files, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = from.Close(t.Context()) }()
			_, err = from.Studies(t.Context())
			if core.MessageOf(err) != tt.message || !strings.HasPrefix(core.HintOf(err), tt.hint) || name == "right" && err != nil {
				t.Errorf("got %q, %q", core.MessageOf(err), core.HintOf(err))
			}
		})
	}
	if _, err := fromsong.OpenServer(server.URL, "", tlsconfig.Files{Flags: true, CAFile: ca + "x"}, time.UTC); !strings.Contains(core.MessageOf(err), "--ca-file: ") {
		t.Error(err)
	}
}
