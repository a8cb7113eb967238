package app_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

var update = flag.Bool("update", false, "write the golden files")

// tabularCode is the repository of tabular data of a gallery.
const tabularCode = "lyric.e2e"

// sound are the catalogues of a gallery that can be used once there are documents: a complete one as Arranger has it, with
// a file for each part, one of tabular data below its envelope and one of the envelope, one with an access rule, two of one
// document type, and two whose ids mean something elsewhere.
func sound() folder {
	return folder{
		"analyses/base.json": based("analysis", aliasWord, `"catalogId":"analyses","description":"All published analyses",`+
			`"disableGraphQLIntrospection":false,"maxAliases":20,"enableSets":true`),
		"analyses/extended.json": `{"extended":[
			{"fieldName":"studyId","displayName":"Study","description":"The study that submitted the analysis","isActive":true},
			{"fieldName":"files.fileSize","displayName":"Size","unit":"bytes","displayType":"bytes","rangeStep":1},
			{"fieldName":"samples__specimen__tumourNormalDesignation","displayName":"Tumour or normal","isArray":true}]}`,
		"analyses/facets.json": `{"facets":{"aggregations":[{"fieldName":"studyId","isActive":true,"show":true},
			{"fieldName":"files__fileType","isActive":true,"show":true}]}}`,
		"analyses/table.json": `{"table":{"rowIdFieldName":"analysisId","maxResultsWindow":10000,
			"columns":[{"fieldName":"analysisId","show":true,"sortable":true,"jsonPath":"$.analysisId"}],
			"defaultSorting":[{"fieldName":"analysisId","desc":false}]}}`,
		"analyses/matchbox.json":  `{"matchbox":[{"fieldName":"files","displayName":"Files","keyFieldName":"objectId","searchFields":["objectId"]}]}`,
		"analyses/downloads.json": `{"downloads":{"allowCustomMaxRows":true,"maxRows":100}}`,
		"analyses/charts.json":    `{"charts":{"query":""}}`,
		"analyses/network.json":   `{"network":{"localNode":{"displayName":"Here","nodeId":"here"},"remoteNodes":[]}}`,

		"records/base.json":  based("record", recordsWord, `"nestingPrefix":"data"`),
		"envelope/base.json": based("envelope", recordsWord, ""),

		"guarded/base.json":   based("guarded", aliasWord, ""),
		"guarded/access.json": `{"field":"studyId","scope":"{value}.READ","public":{"op":"in","content":{"fieldName":"studyId","value":["S1"]}}}`,

		"twin-a/base.json":    based("twin", aliasWord, ""),
		"twin-b/base.json":    based("twin", aliasWord, ""),
		"toString/base.json":  based("stringy", aliasWord, ""),
		"__proto__/base.json": based("proto", aliasWord, ""),
	}
}

// soundIDs are the ids of the sound catalogues.
func soundIDs() []string {
	return []string{"__proto__", "analyses", "envelope", "guarded", "records", "toString", "twin-a", "twin-b"}
}

// gallery returns a world with two repositories, of analyses and of tabular records, and a folder of catalogues. Its tutti is
// not started.
func gallery(t *testing.T, files folder) *world {
	t.Helper()
	lyric, err := testkit.NewLyric(testkit.LyricConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lyric.Close)
	dir := t.TempDir()
	w := newWorld(t, settings{})
	w.set.more = fmt.Sprintf("  - {code: %s, type: lyric, url: %q, indexName: %s, lyric: {categoryId: \"1\"}}\n%s",
		tabularCode, lyric.URL(), w.records(), catalogueDir(dir))
	w.dropAtEnd(w.records())
	files.write(w, dir)
	w.fill("S1", 40)
	w.fill("S2", 40)
	// The Lyric server runs beside the world's Song server.
	tabular := *w
	tabular.lyric = lyric
	tabular.addRecords("ORG-CA", 40)
	return w
}

// index runs over all repositories of a gallery.
func (w *world) index() {
	w.t.Helper()
	for _, repository := range []string{code, tabularCode} {
		job := w.awaitJob(w.mustRequest(http.MethodPost, "/index/repository/"+repository, http.StatusAccepted).get("jobId").String())
		if job.Get("state").String() != string(core.JobSucceeded) {
			w.t.Fatalf("the job of %s: %s", repository, job.Raw)
		}
	}
}

// faulty is a catalogue that fails, with what is said of it.
type faulty struct {
	files folder
	id    string
	failedCatalogue
}

// faults are the faults of catalogues by what is wrong with them.
func faults() map[string]faulty {
	unbuilt := func(documentType, message string) failedCatalogue {
		return failedCatalogue{documentType: documentType, CatalogueProblem: notBuilt(message)}
	}
	negations := strings.Repeat(`{"op":"not","content":[`, 3000) + strings.Repeat(`]}`, 3000)
	return map[string]faulty{
		"no index": {
			folder{"missing/base.json": based("missing", aliasWord+"-none", `"description":"Not there yet"`)},
			"missing",
			failedCatalogue{"missing", "Not there yet", indexMissing(aliasWord + "-none")},
		},
		"broken JSON": {
			folder{"broken/base.json": "{\"documentType\": \"broken\",\n \"esIndex\" \"x\"}"},
			"broken", unbuilt("", `broken/base.json is not valid JSON at line 2, column 12: invalid character '"' after object key`),
		},
		"an empty folder": {folder{"empty/": ""}, "empty", unbuilt("", "empty contains no JSON file")},
		"an id twice, the first": {
			folder{"one/base.json": based("one", aliasWord, `"catalogId":"same"`)},
			"one", unbuilt("one", `"same" is the id of several catalogues, those in one and other: give each its own catalogId`),
		},
		"an id twice, the second": {
			folder{"other/base.json": based("other", aliasWord, `"catalogId":"same"`)},
			"other", unbuilt("other", `"same" is the id of several catalogues, those in one and other: give each its own catalogId`),
		},
		"a route's id": {
			folder{"routed/base.json": based("routed", aliasWord, `"catalogId":"studies"`)},
			"routed", unbuilt("routed", `"studies" cannot be the id of the catalogue in routed, because it is the name of a server route: set another catalogId`),
		},
		"a folder that is called as a route": {
			folder{"console/base.json": based("questions", aliasWord, "")},
			"console", unbuilt("questions", `"console" cannot be the id of the catalogue in console, because it is the name of a server route: set another catalogId`),
		},
		"no index named": {
			folder{"nameless/base.json": `{"documentType":"nameless"}`},
			"nameless", unbuilt("nameless", "nameless/base.json does not set esIndex"),
		},
		"a wrong type": {
			folder{"mistyped/base.json": based("mistyped", aliasWord, `"maxAliases":"many"`)},
			"mistyped", unbuilt("mistyped", "/maxAliases in mistyped/base.json must be a whole number of 0 or more, not a string"),
		},
		"a nesting prefix of nothing": {
			folder{"prefixed/base.json": based("prefixed", aliasWord, `"nestingPrefix":"nothing"`)},
			"prefixed", unbuilt("prefixed", `the mapping of the index has no field "nothing", which nestingPrefix names`),
		},
		"a SQON of 3,000 levels": {
			folder{
				"deep/base.json":   based("deep", aliasWord, ""),
				"deep/access.json": `{"field":"studyId","scope":"{value}.READ","public":` + negations + `}`,
			},
			"deep", unbuilt("deep", "deep/access.json has more than 110 levels of objects and lists"),
		},
	}
}

// TestCatalogueFolder: all catalogues of a folder are listed; every answer about a broken one has the reason, and the others work.
func TestCatalogueFolder(t *testing.T) {
	t.Parallel()
	files := sound()
	for _, f := range faults() {
		maps.Copy(files, f.files)
	}
	w := gallery(t, files)
	w.start()
	w.index()
	w.stop() // so that the fields are those of all documents at once
	w.logs = &logBuffer{}
	w.start()
	w.awaitAvailable(soundIDs()...)

	a := w.summary()
	if a.get("mode").String() != "multiple" || a.get("sqonSchemaPath").String() != "/introspection/sqon" {
		t.Errorf("the summary is %s", a.raw)
	}
	w.wantStatus(core.CataloguesDegraded)
	states := map[string]bool{}
	for _, id := range soundIDs() {
		states[id] = true
	}
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			in := *w
			in.t = t
			f.Message = strings.ReplaceAll(f.Message, aliasWord, w.alias)
			f.shown(&in, f.id)
		})
		states[f.id] = false
		if n := w.logged(saysFailed, f.id); n != 1 {
			t.Errorf("that %s has failed is logged %d times", f.id, n)
		}
	}
	w.wantGauge(states)
	for _, id := range soundIDs() {
		if entry := w.catalogs()[id]; entry.Status != "available" || entry.Error != nil || entry.Paths.Fields != "" {
			t.Errorf("the entry of %s is %+v", id, entry)
		}
		if n := w.logged(saysAvailable, id); n != 1 {
			t.Errorf("that %s is available is logged %d times", id, n)
		}
	}
	if n := len(w.catalogs()); n != len(states) {
		t.Errorf("%d catalogues are listed, want %d", n, len(states))
	}
	w.wantOwnFields()
	w.wantProblems()
}

// wantOwnFields checks what differs between the working catalogues of a gallery.
func (w *world) wantOwnFields() {
	w.t.Helper()
	const bound = "A text of more than 8191 characters counts as missing."
	study := shownField{"Study", "keyword", "", "The study that submitted the analysis. " + bound}
	if diff := cmp.Diff(study, w.fields("analyses")["studyId"]); diff != "" {
		w.t.Error(diff)
	}
	if diff := cmp.Diff(shownField{"Study Id", "keyword", "", bound}, w.fields("guarded")["studyId"]); diff != "" {
		w.t.Error(diff)
	}
	records, envelope := w.fields("records"), w.fields("envelope")
	if records["gender"].Type != "keyword" || envelope["data.gender"].Type != "keyword" || envelope["isValid"].Type != "boolean" {
		w.t.Errorf("gender is %+v below the envelope, %+v with it", records["gender"], envelope["data.gender"])
	}
	if _, is := records["data.gender"]; is {
		w.t.Error("the names below the envelope have its name")
	}
	for id, want := range map[string]bool{"guarded": true, "analyses": false, "__proto__": false, "toString": false} {
		if got := w.detail(id).get("meta.authFiltered"); got.Bool() != want || !got.IsBool() {
			w.t.Errorf("authFiltered of %s is %s", id, got.Raw)
		}
	}
	if got := w.mustRequest(http.MethodGet, "/introspection/stringy", http.StatusOK).get("catalogId").String(); got != "toString" {
		w.t.Errorf("the document type of one catalogue leads to %q", got)
	}
	a := w.mustRequest(http.MethodGet, "/introspection/twin", http.StatusConflict)
	if a.get("code").String() != "ambiguous_document_type" || a.get("matchingCatalogueIds").Raw != `["twin-a","twin-b"]` ||
		a.header.Get("Content-Type") != "application/problem+json" {
		w.t.Errorf("a shared document type: %s", a.raw)
	}
}

// wantProblems sends invalid requests, and fails the test unless each answer is a problem.
func (w *world) wantProblems() {
	w.t.Helper()
	for _, tc := range []struct {
		method, target string
		status         int
		code, detail   string
	}{
		{http.MethodGet, "/introspection/%E0%A4%A", http.StatusBadRequest, "invalid", ""},
		{http.MethodPost, "/%E0%A4%A/graphql", http.StatusBadRequest, "invalid", ""},
		{http.MethodGet, "/introspection/%E0%A4", http.StatusBadRequest, "invalid", "catalogueId"},
		{http.MethodGet, "/introspection/a%00b", http.StatusBadRequest, "invalid", "catalogueId"},
		{http.MethodGet, "/introspection/%2E%2E", http.StatusBadRequest, "invalid", "catalogueId"},
		{http.MethodPost, "/introspection", http.StatusMethodNotAllowed, "method_not_allowed", "does not support this method"},
		{http.MethodPost, "/introspection/analyses", http.StatusMethodNotAllowed, "method_not_allowed", "does not support this method"},
		{http.MethodDelete, "/introspection/broken", http.StatusMethodNotAllowed, "method_not_allowed", "does not support this method"},
		{http.MethodPut, "/introspection/sqon", http.StatusMethodNotAllowed, "method_not_allowed", "does not support this method"},
		{http.MethodGet, "/introspection/fields", http.StatusNotFound, "not_found", "exactly one catalogue"},
		{http.MethodGet, "/introspection/constructor", http.StatusNotFound, "not_found", "catalogue not found"},
		{http.MethodGet, "/introspection/hasOwnProperty", http.StatusNotFound, "not_found", "catalogue not found"},
		{http.MethodGet, "/introspection/same", http.StatusNotFound, "not_found", "catalogue not found"},
		{http.MethodGet, "/introspection/studies", http.StatusNotFound, "not_found", "catalogue not found"},
		{http.MethodPost, "/none/graphql", http.StatusNotFound, "not_found", "catalogue not found"},
		{http.MethodPost, "/graphql", http.StatusNotFound, "not_found", "exactly one catalogue"},
	} {
		a := w.sendRaw(tc.method, tc.target)
		if a.status != tc.status || a.get("code").String() != tc.code || !strings.Contains(a.get("detail").String(), tc.detail) ||
			a.header.Get("Content-Type") != "application/problem+json" {
			w.t.Errorf("%s %s: %d %v %s", tc.method, tc.target, a.status, a.header, a.raw)
		}
		if allow := a.header.Get("Allow"); (tc.status == http.StatusMethodNotAllowed) != (allow == "GET, HEAD") {
			w.t.Errorf("%s %s: Allow %q", tc.method, tc.target, allow)
		}
	}
	// Routes that catalogues are called as are still the routes.
	w.mustRequest(http.MethodGet, "/studies/all", http.StatusOK)
	if got := w.mustRequest(http.MethodGet, "/introspection/sqon", http.StatusOK).get("schema.$schema").String(); !strings.Contains(got, "2020-12") {
		w.t.Errorf("the schema of SQON is one of %q", got)
	}
}

// generated matches the members of a detail that are times.
var generated = regexp.MustCompile(`"generatedAt":"([^"]*)"(?:,"dataIndexedAt":"([^"]*)")?`)

// TestCatalogueDetails: of the same documents all engines return the same details, byte for byte but for their time and OpenSearch's
// type of free-form objects.
func TestCatalogueDetails(t *testing.T) {
	t.Parallel()
	w := gallery(t, sound())
	w.start()
	w.index()
	w.stop() // so that the fields are those of all documents at once
	w.start()
	w.awaitAvailable(soundIDs()...)
	for _, id := range []string{"envelope", "records"} { // which have lists, as a sample shows
		w.eventually(wait, func() (bool, string) {
			raw := w.detail(id).raw
			return strings.Contains(string(raw), `"multiValued":true`), string(raw)
		})
	}
	for _, id := range []string{"analyses", "envelope", "guarded", "records"} {
		t.Run(id, func(t *testing.T) {
			raw := w.detail(id).raw
			found := generated.FindSubmatch(raw)
			if found == nil {
				t.Fatalf("no generatedAt: %.300s", raw)
			}
			if at, err := time.Parse("2006-01-02T15:04:05.000Z", string(found[1])); err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("generatedAt is %s: %v", found[1], err)
			}
			if at, err := time.Parse("2006-01-02T15:04:05.000Z", string(found[2])); err != nil || time.Since(at).Abs() > 10*time.Minute {
				t.Errorf("dataIndexedAt is %s after a restart: %v", found[2], err)
			}
			raw = generated.ReplaceAll(raw, []byte(`"generatedAt":""`))
			if w.engine.openSearch() { // where the length of a text in a free-form object has no such bound
				raw = bytes.ReplaceAll(raw, []byte(`"type":"flat_object"`), []byte(`"type":"flattened","description":"A text of more than 8191 characters counts as missing."`))
				raw = bytes.ReplaceAll(raw, []byte(`"flat_object"`), []byte(`"flattened"`))
			}
			golden(t, "catalogue_"+id, raw)
		})
	}
	t.Run("summary", func(t *testing.T) { golden(t, "catalogue_summary", w.summary().raw) })
	if ids := slices.Sorted(maps.Keys(w.catalogs())); !slices.Equal(ids, soundIDs()) {
		t.Errorf("the catalogues are %q", ids)
	}
}

// golden compares bytes with a golden file, to the byte.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), ","), strings.Split(string(got)+"\n", ",")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
