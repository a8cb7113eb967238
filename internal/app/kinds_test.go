package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/kindstest"
	"tutti/internal/tools/testkit"
)

// kindRecord is a record with one value.
type kindRecord struct{ id, field, value string }

// kindRecords returns sets of records, each set with a field of its own, and the ids of those that a rebuilt index rejects.
func kindRecords(t *testing.T, sets int) (records []kindRecord, rejected []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(37, 2))
	for n := range sets {
		set := kindstest.Generate(rng)
		for i, value := range set {
			records = append(records, kindRecord{fmt.Sprintf("r%d-%d", n, i), fmt.Sprintf("s%d", n), value})
		}
		for _, i := range set.Rejected(t) {
			rejected = append(rejected, fmt.Sprintf("r%d-%d", n, i))
		}
	}
	slices.Sort(rejected)
	return records, rejected
}

// kindAnswers are what clients get of an index.
type kindAnswers struct {
	Fields  map[string]mapping.Type
	Letters map[string]string // hints by record
	Found   map[string]string // answers by filter
}

// kindAnswers reads them, once the catalogue has the fields of the index.
func (w *world) kindAnswers(sets int) kindAnswers {
	w.t.Helper()
	raw, err := w.app.Index().Mapping(w.t.Context(), w.alias)
	if err != nil {
		w.t.Fatal(err)
	}
	tree, err := mapping.Parse(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	all := kindAnswers{Fields: map[string]mapping.Type{}, Letters: map[string]string{}, Found: map[string]string{}}
	for path, f := range tree.Lookup("experiment").All() {
		all.Fields[path] = f.Type
	}
	w.eventually(wait, func() (bool, string) {
		shown := w.fields("a")
		n := 0
		for name := range shown {
			if strings.HasPrefix(name, "experiment.") {
				n++
			}
		}
		for path, kind := range all.Fields {
			if shown["experiment."+path].Type != string(kind) {
				return false, fmt.Sprintf("%s is %q in the catalogue and %q in the index", path, shown["experiment."+path].Type, kind)
			}
		}
		return n == len(all.Fields), fmt.Sprintf("%d fields in the catalogue, %d in the index", n, len(all.Fields))
	})
	for cursor := ""; ; {
		letters, next, err := w.app.Queue().DeadLetters().List(w.t.Context(), core.DeadLetterFilter{Repository: code, Limit: 1000, Cursor: cursor})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, letter := range letters {
			all.Letters[letter.RecordID] = letter.Hint
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for n := range sets {
		for _, path := range []string{"", ".a", ".a.b"} {
			for _, filter := range []string{
				`{"op":"in","content":{"fieldName":%q,"value":["1","yes","true","2020-01-01"]}}`,
				`{"op":"gt","content":{"fieldName":%q,"value":[1]}}`,
				`{"op":"not-in","content":{"fieldName":%q,"value":["__missing__"]}}`,
			} {
				filter = fmt.Sprintf(filter, fmt.Sprintf("experiment.s%d%s", n, path))
				all.Found[filter] = w.found(filter)
			}
		}
	}
	return all
}

// found returns the ids that a filter finds, or the error.
func (w *world) found(filter string) string {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{
		"query":     `query($f:JSON){a{hits(filters:$f,first:1000,sort:[{fieldName:"analysisId"}]){total edges{node{analysisId}}}}}`,
		"variables": map[string]any{"f": json.RawMessage(filter)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.tryPostBody("/a/graphql", string(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return a.get("data").Raw + a.get("errors.#.message").Raw
}

// TestRebuildKinds: whatever the order in which records arrive, a rebuilt index has the same fields, the same dead letters, whose hints name
// the field, both kinds and what to do, and finds the same. TUTTI_TEST_CASES=1000 TUTTI_TEST_ORDERS=10 is the long form.
func TestRebuildKinds(t *testing.T) {
	t.Parallel()
	sets, orders := kindstest.Cases(t, 20), kindstest.Orders(t, 3)
	records, rejected := kindRecords(t, sets)
	var first kindAnswers
	for order := range orders {
		rng := rand.New(rand.NewPCG(uint64(order), 1))
		w, _ := newCatalogued(t, settings{pageSize: 50, environ: []string{"TUTTI_INDEX_LIMITS_NESTEDFIELDS=10000", "TUTTI_INDEX_LIMITS_FIELDS=20000"}},
			folder{"a/base.json": based("a", aliasWord, "")})
		w.dropAtEnd(core.NextAlias(w.alias))
		w.dropAtEnd(core.PreviousAlias(w.alias))
		for _, i := range rng.Perm(len(records)) {
			r := records[i]
			w.put(fmt.Sprintf("S%d", rng.IntN(4)), r.id, fmt.Sprintf(`"experiment":{%q:%s}`, r.field, r.value))
		}
		w.start()
		w.awaitJob(w.startRun("", ""))
		w.awaitAvailable("a")
		job := w.awaitJob(w.startRun("", "?rebuild=true&force=true")) // the index that first values decided may have taken more records
		if job.Get("state").String() == string(core.JobFailed) || job.Get("note").Exists() {
			t.Fatalf("the job is %s", job.Raw)
		}
		got := w.kindAnswers(sets)
		if letters := slices.Sorted(maps.Keys(got.Letters)); !slices.Equal(letters, rejected) {
			t.Errorf("order %d: the dead letters differ (-want +got):\n%s", order, cmp.Diff(rejected, letters))
		}
		for id, hint := range got.Letters {
			if !strings.Contains(hint, `"experiment.s`) || !strings.Contains(hint, "where most records held") ||
				!strings.Contains(hint, "mapping file") || !strings.Contains(hint, "tutti index "+code+" --rebuild") {
				t.Errorf("the hint for %s is %q", id, hint)
			}
		}
		if order == 0 {
			first = got
		} else if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("order %d differs from the first (-first +got):\n%s", order, diff)
		}
		w.stop()
	}
}

// TestRebuildKindsOfTriggers: a rebuild whose last run did not count all values, because triggers have brought some since, decides from those as
// well, without reading the list once more. What was decided holds after a restart and in another process, also for values that the field would
// take.
func TestRebuildKindsOfTriggers(t *testing.T) {
	t.Parallel()
	w, _ := newCatalogued(t, settings{}, folder{"a/base.json": based("a", aliasWord, "")})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.start()
	w.put("S1", "first", `"experiment":{"v":"x"}`)
	w.run("", "", core.JobSucceeded)
	for i, value := range []string{"1", "2.5", `"2020-01-01"`} {
		id := fmt.Sprintf("later-%d", i)
		w.put("S1", id, fmt.Sprintf(`"experiment":{"v":%s,"day":"2020-01-0%d"}`, value, i+1))
		w.trigger("S1", id)
	}
	w.eventually(wait, func() (bool, string) {
		n := len(w.documents()) + len(w.deadLettersByRecord())
		return n == 4, fmt.Sprint(n)
	})
	job := w.run("", "?rebuild=true", core.JobPartial)
	if note := job.Get("note"); note.Exists() {
		t.Errorf("the rebuild says %s", note)
	}
	w.wantLetters("first", "later-2")
	w.stop()
	w.start()
	job = w.run("", "?rebuild=true", core.JobPartial)
	if note := job.Get("note"); note.Exists() {
		t.Errorf("a rebuild after a rebuild says %s", note)
	}
	w.wantLetters("first", "later-2")
	w.put("S1", "text", `"experiment":{"v":"3"}`)
	w.put("S1", "number", `"experiment":{"day":1577836800000}`)
	w.trigger("S1", "text")
	w.trigger("S1", "number")
	w.eventually(wait, func() (bool, string) {
		n := len(w.deadLettersByRecord())
		return n == 4, fmt.Sprint(n)
	})
	letter := w.deadLettersByRecord()["number"]
	if letter.EngineType != core.TypeOtherKind || letter.EngineReason != "[experiment.day] holds a number, where most records held a text when the index was made" {
		t.Errorf("the dead letter is %+v", letter)
	}
}

// wantLetters checks the ids of the dead letters.
func (w *world) wantLetters(ids ...string) {
	w.t.Helper()
	if got := slices.Sorted(maps.Keys(w.deadLettersByRecord())); !slices.Equal(got, ids) {
		w.t.Errorf("the dead letters are %v, want %v", got, ids)
	}
}

// TestSharedIndexDecidesNothing: an index that two repositories share is not rebuilt, so that their runs decide nothing: a value of another
// kind that the field takes stays, and one that it does not take is a dead letter of its own repository.
func TestSharedIndexDecidesNothing(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	for i, value := range []string{`"x"`, `1`, `{"a":1}`} {
		if err := []*testkit.SongServer{p.song, p.other}[i%2].Put("S1", fmt.Appendf(nil, `{"analysisId":"r%d","studyId":"S1","analysisState":"PUBLISHED","experiment":{"v":%s}}`, i, value)); err != nil {
			t.Fatal(err)
		}
	}
	for _, repository := range []string{code, otherCode, code, otherCode} {
		p.awaitJob(p.mustRequest("POST", "/index/repository/"+repository, 202).get("jobId").String())
	}
	p.mustRequest("POST", "/index/repository/"+code+"?rebuild=true", 409)
	raw, err := p.app.Index().Mapping(t.Context(), p.alias)
	if got := mapping.RecordedKinds(raw); err != nil || got != nil {
		t.Errorf("%v are decided, %v", got, err)
	}
	letters := p.deadLetters("")
	if len(letters) != 1 || letters[0].Get("recordId").String() != "r2" || letters[0].Get("repository").String() != code {
		t.Errorf("the dead letters are %v", letters)
	}
}
