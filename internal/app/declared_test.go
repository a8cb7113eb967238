package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// wantTypes checks the types of fields of the world's index.
func (w *world) wantTypes(want map[string]mapping.Type) {
	w.t.Helper()
	raw, err := w.app.Index().Mapping(w.t.Context(), w.alias)
	if err != nil {
		w.t.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]mapping.Type{}
	for path := range want {
		if f := tree.Lookup(path); f != nil {
			got[path] = f.Type
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("types (-want +got):\n%s", d)
	}
}

const declaring = `{"properties":{"experiment":{"properties":{"ratio":{"type":"number"},"n":{"type":"integer"},"day":{"type":"string","format":"date"},"note":{"type":"string"}}}}}`

var schemasRoute = regexp.MustCompile(`/schemas`)

// TestDeclaredTypes: what Song's schemas declare decides before the first value, also of the first single trigger of a process while the
// schemas cannot be read at first, and a later run knows types that were registered since.
func TestDeclaredTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.song.Register("a", declaring)
	w.song.Fail(testkit.Fault{Path: schemasRoute, Times: 2, Status: http.StatusInternalServerError})
	w.start()
	w.put("S1", "first", `"experiment":{"ratio":1,"n":9007199254740993,"day":"2020-01-01","note":"2020-01-01"}`)
	w.trigger("S1", "first")
	w.awaitConverged(wait)
	want := map[string]mapping.Type{
		"experiment.ratio": mapping.Double, "experiment.n": mapping.Long, "experiment.day": mapping.Date, "experiment.note": mapping.Keyword,
	}
	w.wantTypes(want)

	w.song.Register("b", `{"properties":{"experiment":{"properties":{"later":{"type":"integer"},"n":{"type":"number"}}}}}`)
	w.put("S1", "second", `"experiment":{"ratio":2.5,"note":"unknown","later":9007199254740993}`)
	w.run("S1", "", core.JobSucceeded)
	w.wantConverged()
	want["experiment.later"] = mapping.Long
	w.wantTypes(want)
	text := "repository " + code + " declares several types for experiment.n: integer (a:1), number (b:1); indexed as double"
	if a := w.ready(); a.status != http.StatusOK || !strings.Contains(string(a.raw), text) {
		t.Errorf("/ready: %s", a.raw)
	}
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestDeclaredTypesOfRebuild: what Song's schemas declare decides for the index that a rebuild fills, over what most records hold, and a mapping
// file decides over both.
func TestDeclaredTypesOfRebuild(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(file, []byte(`{"properties":{"experiment":{"properties":{"filed":{"type":"keyword"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.song.Register("a", `{"properties":{"experiment":{"properties":{"n":{"type":"integer"},"note":{"type":"string"},"filed":{"type":"integer"}}}}}`)
	w.start()
	w.put("S1", "first", `"experiment":{"n":9007199254740993,"note":"2020-01-01","filed":1}`)
	want := map[string]mapping.Type{"experiment.n": mapping.Long, "experiment.note": mapping.Keyword, "experiment.filed": mapping.Keyword}
	for _, query := range []string{"", "?rebuild=true"} {
		w.run("", query, core.JobSucceeded)
		w.awaitConverged(wait)
		w.wantTypes(want)
	}
}

// TestDeclaredOfShared: of an index that two Songs share, the declarations of both decide, whichever was read last.
func TestDeclaredOfShared(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	want := map[string]mapping.Type{}
	for n, song := range []*testkit.SongServer{p.song, p.other} {
		name := fmt.Sprintf("n%d", n)
		song.Register("a", `{"properties":{"experiment":{"properties":{"`+name+`":{"type":"integer"}}}}}`)
		want["experiment."+name] = mapping.Long
	}
	for _, repository := range []string{code, otherCode} { // reads what it declares, before there is a value
		p.runOf(repository, "")
	}
	p.put("S1", "A", `"experiment":{"n0":9007199254740993}`)
	if err := p.other.Put("S1", []byte(`{"analysisId":"B","studyId":"S1","analysisState":"PUBLISHED","experiment":{"n1":9007199254740993}}`)); err != nil {
		t.Fatal(err)
	}
	p.trigger("S1", "A")
	p.mustRequest(http.MethodPost, p.record(otherCode, "B"), http.StatusAccepted)
	p.awaitDocuments("A", "B")
	p.wantTypes(want)
}

// TestTypeOfTrigger: types that were registered since the last run decide before the first value, also of a trigger.
func TestTypeOfTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.song.Register("a", declaring)
	w.start()
	w.put("S1", "first", `"analysisType":{"name":"a","version":1},"experiment":{"n":1}`)
	w.run("", "", core.JobSucceeded)
	w.song.Register("a", `{"properties":{"experiment":{"properties":{"day":{"type":"string","format":"date"},"later":{"type":"integer"}}}}}`)
	w.put("S1", "second", `"analysisType":{"name":"a","version":2},"experiment":{"day":"2020-01-01","later":9007199254740993}`)
	w.trigger("S1", "second")
	w.awaitConverged(wait)
	w.wantTypes(map[string]mapping.Type{"experiment.later": mapping.Long})
	if n := len(w.deadLettersByRecord()); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// TestNothingDeclared: a Song that does not return its schemas is indexed by the rules for undeclared values.
func TestNothingDeclared(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest, http.StatusMethodNotAllowed} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{})
			w.song.Register("a", declaring)
			w.song.Fail(testkit.Fault{Path: schemasRoute, Status: status})
			w.start()
			w.put("S1", "first", `"experiment":{"ratio":1,"n":1,"day":"2020-01-01"}`)
			w.run("", "", core.JobSucceeded)
			w.wantConverged()
			w.wantTypes(map[string]mapping.Type{"experiment.ratio": mapping.Double, "experiment.n": mapping.Double, "experiment.day": mapping.Keyword})
		})
	}
}

// TestSchemasFail: a run waits for a Song that does not return its schemas, as for its list, and nothing is lost.
func TestSchemasFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.song.Register("a", declaring)
	w.song.Fail(testkit.Fault{Path: schemasRoute, Status: http.StatusServiceUnavailable})
	w.start()
	w.put("S1", "first", `"experiment":{"ratio":1}`)
	job := w.startRun("", "")
	w.eventually(wait, func() (bool, string) {
		state := w.job(job).Get("state").String()
		return state == string(core.JobPaused), state
	})
	if documents := w.documents(); len(documents) != 0 {
		t.Errorf("documents %v", documents)
	}
	w.song.ClearFaults()
	if state := w.awaitJob(job).Get("state").String(); state != string(core.JobSucceeded) {
		t.Errorf("the job ended %s", state)
	}
	w.wantConverged()
	w.wantTypes(map[string]mapping.Type{"experiment.ratio": mapping.Double})
}

// TestBuiltInDeclares: the analysis types of the built-in repository decide, also those that were registered since the last write.
func TestBuiltInDeclares(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	const values = `{"ratio":1,"n":9007199254740993,"day":"2020-01-01","note":"2020-01-01","free":1}`
	for i, schema := range []string{declaring, strings.ReplaceAll(declaring, `"experiment":{"properties"`, `"experiment":{},"more":{"properties"`)} {
		name := fmt.Sprint("declaring", i)
		schema = strings.Replace(schema, `{"properties"`, `{"type":"object","required":["experiment"],"properties"`, 1)
		b.mustSend(http.MethodPost, "/schemas", `{"name":"`+name+`","schema":`+schema+`}`, http.StatusOK)
		body := strings.Replace(b.payload("S1", strings.Trim(values, "{}")), `"plain"`, `"`+name+`"`, 1)
		if i == 1 {
			body = strings.Replace(body, `"experiment"`, `"more":`+values+`,"experiment"`, 1)
		}
		id := b.mustSend(http.MethodPost, "/submit/S1", body, http.StatusOK).get("analysisId").String()
		b.publish("S1", id)
		b.awaitConverged()
	}
	want := map[string]mapping.Type{}
	for _, above := range []string{"experiment.", "more."} {
		want[above+"ratio"], want[above+"n"], want[above+"day"], want[above+"note"] = mapping.Double, mapping.Long, mapping.Date, mapping.Keyword
		want[above+"free"] = mapping.Double
	}
	b.wantTypes(want)
	b.wantNoDeadLetters()
}

// TestLyricDeclares: the dictionary of the Lectern that lyric.dictionaryUrl names decides.
func TestLyricDeclares(t *testing.T) {
	t.Parallel()
	lectern, err := testkit.NewLectern()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lectern.Close)
	lectern.Add(`{"name":"clinical","version":"1.2","schemas":[{"name":"donor","fields":[{"name":"age","valueType":"integer"},{"name":"height","valueType":"number"}]}]}`)
	w := newWorld(t, settings{lyric: &testkit.LyricConfig{}, repository: `lyric: {categoryId: "1", dictionaryUrl: "` + lectern.URL() + `"}`})
	w.start()
	record, err := dataset.ParseLyricRecord([]byte(`{"data":{"age":9007199254740993,"height":170,"other":1},"entityName":"donor","isValid":true,"organization":"O1","systemId":"D1"}`))
	if err != nil {
		t.Fatal(err)
	}
	w.lyric.PutAll(record)
	w.run("O1", "", core.JobSucceeded)
	w.wantTypes(map[string]mapping.Type{"data.age": mapping.Long, "data.height": mapping.Double, "data.other": mapping.Double})
	if !slices.Contains(lectern.RawPaths(), "/dictionaries") {
		t.Errorf("the Lectern was asked for %v", lectern.RawPaths())
	}
}
