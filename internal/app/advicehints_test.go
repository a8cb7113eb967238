package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// renameIndex does what "another indexName" advises: all repositories of the world get it.
func (w *world) renameIndex(suffix string) {
	w.t.Helper()
	before := w.alias
	w.stop()
	w.alias += suffix
	w.dropAtEnd(w.alias)
	w.set.more = strings.ReplaceAll(w.set.more, "indexName: "+before, "indexName: "+w.alias)
	w.start()
	w.awaitPaused(false)
}

// TestAdviceOfSharedIndices: whoever sets another indexName for the repositories that share an index, as three messages advise when the type of a
// field has changed, has all records in the new index, with the new type.
func TestAdviceOfSharedIndices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(kind string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"properties":{"donor":{"properties":{"age":{"type":%q}}}}}`, kind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("long")
	p := startSharing(t, fmt.Sprintf("mappingFile: %q", file))
	p.has("A1", "2024-01-01T00:00:00Z", "female", 0, 1)
	p.put("S1", "A2", `"sex":"male","donor":{"age":"old"}`)
	p.runOf(otherCode, "")
	p.trigger("S1", "A2")
	letter := p.awaitDeadLetters("", 1)[0]
	if hint := letter.Get("hint").String(); !strings.HasSuffix(hint, "; or if the type of the field has changed, give the repositories that share the index "+p.alias+" another indexName") {
		t.Errorf("the hint of the dead letter is %q", hint)
	}
	a := p.mustRequest(http.MethodPost, runPath("")+"?rebuild=true", http.StatusConflict)
	if hint := a.get("hint").String(); !strings.HasPrefix(hint, "give the repositories that share it another indexName, which is filled beside it; the index remains until you delete it") {
		t.Errorf("the hint of the rebuild is %q", hint)
	}
	write("keyword")
	p.stop()
	p.start()
	p.eventually(wait, func() (bool, string) {
		said := p.ready().get("reasons").String()
		return strings.Contains(said, "; give the repositories that share the index another indexName (tutti mapping plan "), said
	})
	plan := p.mustRequest(http.MethodGet, runPath("")+"/mapping", http.StatusOK)
	if next := plan.get("next").Raw; next != `["choose another indexName for all repositories that share this one"]` {
		t.Errorf("the plan says %s", next)
	}
	p.renameIndex("-keyword")
	p.runOf(code, "")
	p.runOf(otherCode, "")
	p.awaitFound(map[string]string{"A1": "female " + code + " " + otherCode, "A2": "male " + code})
	p.awaitDeadLetters("", 0)
	if said := p.ready().get("reasons").String(); strings.Contains(said, "indexName") {
		t.Errorf("/ready says %s", said)
	}
}

// TestAdviceOfLongValues: whoever sets ignore_above of a field, or enabled: false of an object, in the mapping file, as the hints of values that
// are too long and of records with too many fields advise, gets the records indexed.
func TestAdviceOfLongValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(key, free, wide string) {
		properties := fmt.Sprintf(`{"properties":{"key":{"type":"keyword"%s},"free":{"type":%s},"wide":{"type":"object"%s}}}`, key, free, wide)
		if err := os.WriteFile(file, []byte(properties), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("", `"flattened"`, "")
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file), maxRecordBytes: 100_000})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	var many strings.Builder
	for i := range 5100 {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	hints := map[string]string{
		"key":  "set ignore_above of the field in the mapping file, so that longer values are stored but not searched; then retry",
		"free": "map the object with enabled: false in the mapping file, so that it is stored but not searched; then retry",
		"wide": "or map it with enabled: false in the mapping file; or raise index.limits.fields and rebuild the index, or the setting",
	}
	w.put("S1", "key", `"key":"`+strings.Repeat("é", 20_000)+`"`)
	w.put("S1", "free", `"free":{"`+strings.Repeat("n", 30_000)+`":"`+strings.Repeat("é", 5000)+`"}`)
	w.put("S1", "wide", `"wide":{`+many.String()[1:]+`}`)
	w.run("", "", core.JobPartial)
	letters := w.byRecord("")
	for id, hint := range hints {
		if got := letters[id].Get("hint").String(); !strings.Contains(got, hint) {
			t.Errorf("%s: the hint is %q, want it with %q (%s)", id, got, hint, letters[id].Get("engineReason"))
		}
	}
	restart := func() {
		t.Helper()
		w.stop()
		w.start()
		w.awaitPaused(false)
	}
	write(`,"ignore_above":8191`, `"flattened"`, "")
	restart()
	w.retry(letters["key"], http.StatusAccepted)
	w.awaitDeadLetters("", len(hints)-1)
	write(`,"ignore_above":8191`, `"object","enabled":false`, `,"enabled":false`)
	restart()
	var rebuild string
	w.eventually(wait, func() (bool, string) { // such a change needs a rebuild, as /ready says
		rebuild = w.ready().get(`reasons.#(%"*contradicts*")`).String()
		return strings.Contains(rebuild, "; run tutti index "+code+" --rebuild"), rebuild
	})
	w.doAdvised(rebuild)
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestAdviceOfWholeNumbers: whoever declares a field as integer, maps it as long, or sends a text, as the hint of a whole number that a double may
// change advises, gets the record indexed as it is.
func TestAdviceOfWholeNumbers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(properties string) {
		if err := os.WriteFile(file, []byte(`{"properties":{`+properties+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	const number = "9007199254740993"
	fields := []string{"declared", "mapped", "text"}
	for _, id := range fields {
		w.put("S1", id, `"experiment":{"`+id+`":`+number+`}`)
	}
	w.run("", "", core.JobPartial)
	for id, letter := range w.byRecord("") {
		want := "nothing declares the type of experiment." + id + ", so that its numbers are doubles, which are exact up to 9007199254740992: declare it " +
			"as integer in the schema, or map it as long in the mapping file, and rebuild the index; or send it as a text; then retry"
		if got := letter.Get("hint").String(); got != want {
			t.Errorf("%s: the hint is %q, want %q", id, got, want)
		}
	}
	letters := w.byRecord("")
	if len(letters) != len(fields) {
		t.Fatalf("%d dead letters", len(letters))
	}
	w.put("S1", "text", `"experiment":{"text":"`+number+`"}`)
	w.retry(letters["text"], http.StatusAccepted)
	w.awaitDeadLetters("", len(fields)-1)
	w.song.Register("a", `{"properties":{"experiment":{"properties":{"declared":{"type":"integer"}}}}}`)
	write(`"experiment":{"properties":{"mapped":{"type":"long"}}}`)
	w.stop()
	w.start()
	w.awaitPaused(false)
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestAdviceOfNewFields: whoever describes a new field in the mapping file, removes it from the record, or lets newFields accept it, as the hint of
// a record that newFields: reject has rejected advises, gets the record indexed.
func TestAdviceOfNewFields(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(properties string) {
		if err := os.WriteFile(file, []byte(`{"properties":{`+properties+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`"donor":{"properties":{"age":{"type":"long"}}}`)
	set := func(newFields string) string { return fmt.Sprintf("mappingFile: %q\nnewFields: %s", file, newFields) }
	w := startWorld(t, settings{repository: set("reject")})
	for _, id := range []string{"described", "removed", "ignored"} {
		w.put("S1", id, `"donor":{"age":7,"`+id+`":1}`)
	}
	w.run("", "", core.JobPartial)
	letters := w.byRecord("")
	if len(letters) != 3 {
		t.Fatalf("%d dead letters", len(letters))
	}
	for id, letter := range letters {
		want := `newFields is reject, and the mapping does not have the field "donor.` + id + `": add it to the mapping file, or remove it from the record, ` +
			"then retry; newFields: add or ignore accepts it"
		if got := letter.Get("hint").String(); got != want {
			t.Errorf("%s: the hint is %q, want %q (%s)", id, got, want, letter.Get("engineReason"))
		}
	}
	w.put("S1", "removed", `"donor":{"age":7}`)
	w.retry(letters["removed"], http.StatusAccepted)
	w.awaitDeadLetters("", 2)
	for id, change := range map[string]func(){
		"described": func() { write(`"donor":{"properties":{"age":{"type":"long"},"described":{"type":"long"}}}`) },
		"ignored":   func() { w.set.repository = set("ignore") },
	} {
		change()
		w.stop()
		w.start()
		w.awaitPaused(false)
		w.retry(letters[id], http.StatusAccepted)
		w.eventually(wait, func() (bool, string) {
			_, left := w.byRecord("")[id]
			return !left, "the dead letter of " + id
		})
	}
	w.awaitConverged(wait)
}

// TestAdviceOfOtherKinds: whoever fixes the record, describes the field in a mapping file and rebuilds, or rebuilds once most records hold the kind,
// as the hint of a value of another kind than a rebuild has decided advises, gets the record indexed.
func TestAdviceOfOtherKinds(t *testing.T) {
	t.Parallel()
	for name, follow := range map[string]func(w *world, file string, letter gjson.Result){
		"record": func(w *world, _ string, letter gjson.Result) {
			w.put("S1", "odd", `"age":9`)
			w.retry(letter, http.StatusAccepted)
		},
		"mapping file": func(w *world, file string, letter gjson.Result) {
			if err := os.WriteFile(file, []byte(`{"properties":{"age":{"type":"keyword"}}}`), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.stop()
			w.start()
			w.awaitPaused(false)
			w.doAdvised(letter.Get("hint").String())
		},
		"most records": func(w *world, _ string, letter gjson.Result) {
			for _, id := range []string{"A1", "A2", "A3"} {
				w.put("S1", id, `"age":"old"`)
			}
			w.run("", "", core.JobPartial)
			w.doAdvised(letter.Get("hint").String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "mapping.json")
			if err := os.WriteFile(file, []byte(`{"properties":{"analysisId":{"type":"keyword"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
			w.dropAtEnd(core.NextAlias(w.alias))
			w.dropAtEnd(core.PreviousAlias(w.alias))
			for _, id := range []string{"A1", "A2"} {
				w.put("S1", id, `"age":7`)
			}
			w.run("", "", core.JobSucceeded)
			w.run("", "?rebuild=true", core.JobSucceeded)
			w.put("S1", "odd", `"age":"old"`)
			w.run("", "", core.JobPartial)
			letter := w.awaitDeadLetters("", 1)[0]
			want := `the field "age" holds a text, where most records held a number when the index was made: fix the record, then retry; or describe the field in ` +
				file + " and run tutti index " + code + " --rebuild (which alone is enough once most records hold this kind)"
			if got := letter.Get("hint").String(); got != want {
				t.Errorf("the hint is %q, want %q", got, want)
			}
			follow(w, file, letter)
			w.awaitDeadLetters("", 0)
			w.awaitConverged(wait)
		})
	}
}

// TestAdviceOfRetries: whoever does what the refusal of a retry advises has the records indexed, and can discard the dead letter.
func TestAdviceOfRetries(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 3)
	runAll := func() { w.run("", "", core.JobSucceeded) }
	runOne := func() { w.run("S1", "", core.JobSucceeded) }
	request := func(scope core.Scope, page *core.Page) *core.Request {
		return &core.Request{
			ID: string(scope), Kind: core.KindIndex, Scope: scope, Repository: code, Organization: "S1", JobID: "job-1", Page: page,
			Cause: core.CauseREST, ReceivedAt: time.Now(),
		}
	}
	long := request(core.ScopeOrganization, nil)
	long.Organization = strings.Repeat("o", 600)
	runOne()
	for name, c := range map[string]struct {
		letter core.DeadLetter
		hint   string
		follow func()
	}{
		"an organization that cannot be run": {core.DeadLetter{Request: long, Organization: long.Organization}, "run its repository instead", runAll},
		"part of a message": {
			core.DeadLetter{Source: "webhook", Document: []byte(`{"analysisId":"` + ids[0]), Truncated: true},
			"have the message sent again, or index its record or organization",
			func() { w.postBody(webhook, songEvent(code, "S1", ids[0], "PUBLISHED"), http.StatusAccepted) },
		},
		"part of a message, whose record is indexed instead": {
			core.DeadLetter{Source: "webhook", Position: "2", Document: []byte(`{"analysisId":`), Truncated: true},
			"have the message sent again, or index its record or organization",
			func() { w.trigger("S1", ids[1]) },
		},
		"a message that is not understood": {
			core.DeadLetter{Source: "webhook", Document: []byte(`{"studyId":1}`)},
			"have a corrected message sent, or discard the dead letter",
			func() { w.postBody(webhook, songEvent(code, "S1", ids[2], "PUBLISHED"), http.StatusAccepted) },
		},
		"neither a record nor a run": {core.DeadLetter{Organization: "S1"}, "fix the record in its repository, then index its organization", runOne},
		"a repository that is gone": {
			core.DeadLetter{Repository: "song.gone", RecordID: "A"}, "configure the repository again, or discard the dead letter", func() {},
		},
		"a retry": {
			core.DeadLetter{Request: request(core.ScopeRetry, nil)},
			"retry them again (tutti dead-letters retry --all), and discard the dead letter",
			func() { w.awaitJob(w.retryAll("")) },
		},
		"a list of ids": {
			core.DeadLetter{Request: request(core.ScopeIDs, nil)},
			"send the ids of job job-1 without an outcome again, and discard the dead letter",
			func() {
				w.awaitJob(w.postIDs(runPath("S1"), strings.Join(ids, "\n"), http.StatusAccepted).get("jobId").String())
			},
		},
		"several organizations": {
			core.DeadLetter{Request: request(core.ScopePage, &core.Page{Group: true})},
			"run the repository again, and discard the dead letter", runAll,
		},
	} {
		if !t.Run(name, func(t *testing.T) {
			letter := c.letter
			if letter.Repository == "" {
				letter.Repository = code
			}
			letter.Reason = core.ReasonRejected
			if err := w.app.Queue().DeadLetters().Put(t.Context(), letter); err != nil {
				t.Fatal(err)
			}
			stored := w.awaitDeadLetters("", 1)[0]
			if a := w.retry(stored, http.StatusConflict); a.get("hint").String() != c.hint {
				t.Fatalf("%s, want the hint %q", a.raw, c.hint)
			}
			c.follow()
			w.awaitConverged(wait)
			if len(w.deadLetters("")) > 0 {
				w.mustRequest(http.MethodDelete, "/dead-letters/"+stored.Get("id").String(), http.StatusNoContent)
			}
			w.awaitDeadLetters("", 0)
			for _, id := range ids { // for the next to index
				w.put("S1", id, fmt.Sprintf(`"after":%q`, name))
			}
			runOne()
		}) {
			return
		}
	}
}
