package song_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
	"tutti/internal/upstream/song"
)

// port is what consumers need of a metadata repository.
type port interface {
	Organizations(ctx context.Context) ([]string, error)
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

var _ port = (*song.Client)(nil)

func serve(t *testing.T, cfg testkit.SongConfig) *testkit.SongServer {
	t.Helper()
	server, err := testkit.NewSong(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func client(t *testing.T, server *testkit.SongServer, cfg song.Config) *song.Client {
	t.Helper()
	cfg.URL = server.URL()
	c, err := song.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func put(t *testing.T, server *testkit.SongServer, study, id, state string) string {
	t.Helper()
	body := fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":%q}`, id, study, state)
	if err := server.Put(study, []byte(body)); err != nil {
		t.Fatal(err)
	}
	return body
}

// read collects a page; the bodies are copied.
func read(t *testing.T, c *song.Client, study string, offset, limit int) ([]core.Record, core.PageInfo, error) {
	t.Helper()
	var records []core.Record
	info, err := c.Page(t.Context(), study, offset, limit, func(r core.Record) error {
		r.Body = slices.Clone(r.Body)
		records = append(records, r)
		return nil
	})
	return records, info, err
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	got, err := c.Organizations(t.Context())
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("no studies: %v, %v", got, err)
	}
	for _, study := range []string{"S2", "S1", "é/ü"} {
		server.AddStudy(study)
	}
	got, err = c.Organizations(t.Context())
	if d := cmp.Diff([]string{"S2", "S1", "é/ü"}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, bad := range []string{`{"errorId":"x"}`, `null`, `["S1"`, `["S1",2]`, `["S1",null]`, `<html>`} {
		server.Fail(testkit.Fault{Status: http.StatusOK, ContentType: "application/json", Body: bad})
		if _, err := c.Organizations(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("%s: %v", bad, err)
		}
		server.ClearFaults()
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]testkit.SongConfig{
		"plain": {}, "gzip": {Gzip: true}, "totals first": {TotalsFirst: true}, "base path": {BasePath: "/a/song"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, cfg)
			analyses := dataset.GenerateAnalyses(3, "PANC-CA", 250)
			server.PutAll(analyses...)
			put(t, server, "PANC-CA", "hidden", "UNPUBLISHED")
			c := client(t, server, song.Config{})
			var got []core.Record
			for offset := 0; ; {
				records, info, err := read(t, c, "PANC-CA", offset, 100)
				if err != nil {
					t.Fatal(err)
				}
				if info.Total != 250 || info.Rows != len(records) {
					t.Fatalf("info %+v with %d records", info, len(records))
				}
				got = append(got, records...)
				if offset += info.Rows; offset >= info.Total {
					break
				}
			}
			if len(got) != len(analyses) {
				t.Fatalf("%d records", len(got))
			}
			for i, r := range got {
				want := core.Record{ID: analyses[i].ID, Organization: "PANC-CA", State: "PUBLISHED", Indexable: true, Body: analyses[i].Body, Plain: true}
				if d := cmp.Diff(want, r, cmp.Comparer(bytes.Equal), cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" {
					t.Fatalf("record %d (-want +got):\n%s", i, d)
				}
				if r.Shape == 0 {
					t.Fatalf("record %d has no shape", i)
				}
			}
		})
	}
}

func TestPageAsksForItsStates(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	put(t, server, "S1", "a", "UNPUBLISHED")
	put(t, server, "S1", "b", "SUPPRESSED")
	put(t, server, "S1", "c", "PUBLISHED")
	c := client(t, server, song.Config{States: []string{"PUBLISHED", "UNPUBLISHED"}})
	records, info, err := read(t, c, "S1", 0, 7)
	if err != nil || len(records) != 2 || records[0].ID != "a" || records[1].ID != "c" || info.Total != 2 {
		t.Errorf("%v, %+v, %v", records, info, err)
	}
	want := []testkit.PageCall{{Study: "S1", States: []string{"PUBLISHED", "UNPUBLISHED"}, Offset: 0, Limit: 7}}
	if d := cmp.Diff(want, server.PageCalls()); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestPagePastTheEndIsEmpty(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	put(t, server, "S1", "a", "PUBLISHED")
	records, info, err := read(t, client(t, server, song.Config{}), "S1", 5, 10)
	if err != nil || len(records) != 0 || info != (core.PageInfo{Rows: 0, Total: 1}) {
		t.Errorf("%v, %+v, %v", records, info, err)
	}
}

func TestPageErrorOfEach(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	server.PutAll(dataset.GenerateAnalyses(1, "S1", 20)...)
	stop := errors.New("enough")
	calls := 0
	_, err := client(t, server, song.Config{}).Page(t.Context(), "S1", 0, 20, func(core.Record) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 { //nolint:errorlint // identity is part of the contract
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestPageInvalidRequest(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	for _, args := range []struct {
		study         string
		offset, limit int
	}{{"", 0, 1}, {"..", 0, 1}, {".", 0, 1}, {"S", -1, 1}, {"S", 0, 0}} {
		if _, _, err := read(t, c, args.study, args.offset, args.limit); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%+v: %v", args, err)
		}
	}
	for _, id := range []string{"", ".", "..", "paginated"} {
		if _, err := c.Record(t.Context(), "S", id); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%q: %v", id, err)
		}
	}
	if n := len(server.RawPaths()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestPageMustBeAPage(t *testing.T) {
	t.Parallel()
	a := `{"analysisId":"a","studyId":"S1","analysisState":"PUBLISHED"}`
	tests := []struct {
		name, body, message string
	}{
		{"html", `<html>maintenance</html>`, "the upstream's answer is not JSON"},
		{"empty", ``, "the upstream's answer was cut short"},
		{"no analyses", `{"totalAnalyses":0,"currentTotalAnalyses":0}`, "the upstream's answer is not a page"},
		{"no total", `{"analyses":[],"currentTotalAnalyses":0}`, "the upstream's page has an unexpected format"},
		{"total no number", `{"analyses":[],"totalAnalyses":"0"}`, "the upstream's page has an unexpected format"},
		{"total negative", `{"analyses":[],"totalAnalyses":-1}`, "the upstream's page has an unexpected format"},
		{"size no number", `{"analyses":[],"totalAnalyses":0,"currentTotalAnalyses":null}`, "the upstream's page has an unexpected format"},
		{"rows lost", `{"analyses":[` + a + `],"totalAnalyses":2,"currentTotalAnalyses":2}`, "the upstream's page was cut short"},
		{"rows gained", `{"analyses":[` + a + `],"totalAnalyses":2,"currentTotalAnalyses":0}`, "the upstream's page was cut short"},
		{"error document", `{"errorId":"analysis.id.not.found"}`, "the upstream's answer is not a page"},
		{"more behind", `{"analyses":[],"totalAnalyses":0}x`, "the upstream's answer continues after its end"},
	}
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server.ClearFaults()
			server.Fail(testkit.Fault{Status: http.StatusOK, ContentType: "application/json", Body: tt.body})
			_, _, err := read(t, c, "S1", 0, 10)
			if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != tt.message {
				t.Errorf("code %q, message %q", core.CodeOf(err), core.MessageOf(err))
			}
		})
	}
}

func TestPageWithoutCurrentTotal(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	server.Fail(testkit.Fault{Status: http.StatusOK, Body: `{"analyses":[{"analysisId":"a"},{}],"totalAnalyses":2}`})
	records, info, err := read(t, client(t, server, song.Config{}), "S1", 0, 10)
	if err != nil || len(records) != 2 || !records[0].Indexable || records[1].ID != "" || info.Rows != 2 {
		t.Errorf("%+v, %+v, %v", records, info, err)
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	want := core.Record{ID: "a", Organization: "S1", State: "PUBLISHED", Indexable: true, Body: []byte(put(t, server, "S1", "a", "PUBLISHED")), Plain: true}
	c := client(t, server, song.Config{})
	got, err := c.Record(t.Context(), "S1", "a")
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(core.Record{}, "Shape")); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	server.SetState("a", "UNPUBLISHED")
	got, err = c.Record(t.Context(), "S1", "a")
	if err != nil || got.State != "UNPUBLISHED" || got.Indexable {
		t.Errorf("unpublished: %+v, %v", got, err)
	}
	if n := server.RecordRequests("a"); n != 2 {
		t.Errorf("%d calls", n)
	}
}

func TestRecordIDs(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	for _, id := range []string{"..%2F", "a/b", "../../studies/all", "%", "?", "#", "a b", "😀", "...", `q"q`, "a\\b", "\x01"} {
		study := "S " + id
		body := fmt.Sprintf(`{"analysisId":%s,"studyId":%s,"analysisState":"PUBLISHED"}`, quote(t, id), quote(t, study))
		if err := server.Put(study, []byte(body)); err != nil {
			t.Fatal(err)
		}
		r, err := c.Record(t.Context(), study, id)
		if err != nil || r.ID != id || r.Organization != study || !r.Indexable {
			t.Errorf("%q: %+v, %v", id, r, err)
		}
		records, _, err := read(t, c, study, 0, 5)
		if err != nil || len(records) != 1 || records[0].ID != id {
			t.Errorf("%q: page of %d, %v", id, len(records), err)
		}
	}
	for _, raw := range server.RawPaths() {
		if strings.Count(raw, "/") != 4 {
			t.Errorf("an id left its segment: %s", raw)
		}
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	quoted, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

func TestRecordErrorDocuments(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	put(t, server, "S1", "a", "PUBLISHED")
	server.AddStudy("S2")
	c := client(t, server, song.Config{})
	tests := []struct {
		name, study, id string
		code            core.Code
		message         string
		is              error
	}{
		{"no analysis", "S1", "b", core.CodeAbsent, "the analysis does not exist upstream", song.ErrAnalysisAbsent},
		{"no study", "S3", "a", core.CodeAbsent, "the study does not exist upstream", song.ErrStudyAbsent},
		{"other study", "S2", "a", core.CodeUpstream, "the analysis belongs to another study", song.ErrOtherStudy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := c.Record(t.Context(), tt.study, tt.id)
			if core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.message || !errors.Is(err, tt.is) {
				t.Errorf("%v with code %q", err, core.CodeOf(err))
			}
		})
	}
	if _, _, err := read(t, c, "S3", 0, 1); core.CodeOf(err) != core.CodeAbsent || !errors.Is(err, song.ErrStudyAbsent) {
		t.Errorf("page of no study: %v", err)
	}
	lenient := serve(t, testkit.SongConfig{Lenient: true})
	put(t, lenient, "S1", "a", "PUBLISHED")
	lenient.AddStudy("S2")
	if r, err := client(t, lenient, song.Config{}).Record(t.Context(), "S2", "a"); err != nil || r.Organization != "S1" {
		t.Errorf("lenient: %+v, %v", r, err)
	}
}

func TestRecordMustBeAnAnalysis(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.SongConfig{})
	c := client(t, server, song.Config{})
	for body, code := range map[string]core.Code{
		`{}`:                     core.CodeUnavailable,
		`{"status":"up"}`:        core.CodeUnavailable,
		`[]`:                     core.CodeUnavailable,
		`true`:                   core.CodeUnavailable,
		``:                       core.CodeUnavailable,
		`{"analysisId":"a","st`:  core.CodeUnavailable,
		`<html>`:                 core.CodeUnavailable,
		`{"analysisId":"a"}`:     core.CodeUnavailable,
		`{"analyses":[]}`:        core.CodeUnavailable,
		analysis("a", "S1", ""):  core.CodeUnavailable,
		analysis("b", "S1", "P"): core.CodeUpstream,
	} {
		server.ClearFaults()
		server.Fail(testkit.Fault{Status: http.StatusOK, Body: body})
		if _, err := c.Record(t.Context(), "S1", "a"); core.CodeOf(err) != code {
			t.Errorf("%s: %v with code %q", body, err, core.CodeOf(err))
		}
	}
}

func analysis(id, study, state string) string {
	return fmt.Sprintf(`{"analysisId":%q,"studyId":%q,"analysisState":%q}`, id, study, state)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]song.Config{
		"url": {}, "state": {Config: upstream.Config{URL: "http://h"}, States: []string{"A,B"}},
		"size": {Config: upstream.Config{URL: "http://h", MaxRecordBytes: -1}},
	} {
		if _, err := song.New(cfg); core.CodeOf(err) != core.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkPage reads 5,000 analyses from a server in this process; ns/record includes the server's side.
func BenchmarkPage(b *testing.B) {
	server, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	server.PutAll(dataset.GenerateAnalyses(1, "S1", 5000)...)
	c, err := song.New(song.Config{Config: upstream.Config{URL: server.URL()}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		for offset := 0; offset < 5000; offset += 500 {
			if _, err := c.Page(b.Context(), "S1", offset, 500, func(core.Record) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*5000), "ns/record")
}

func ExampleClient_Page() {
	server, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	if err := server.Put("S1", []byte(analysis("a1", "S1", "PUBLISHED"))); err != nil {
		panic(err)
	}
	c, err := song.New(song.Config{Config: upstream.Config{URL: server.URL()}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	info, err := c.Page(context.Background(), "S1", 0, 100, func(r core.Record) error {
		fmt.Println(r.ID, r.Organization, r.State, r.Indexable)
		return nil
	})
	fmt.Println(info.Rows, info.Total, err)
	// Output:
	// a1 S1 PUBLISHED true
	// 1 1 <nil>
}
