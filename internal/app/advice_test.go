package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// commandInText matches a command that a message advises, up to the end of its clause.
var commandInText = regexp.MustCompile(`tutti (?:index|dead-letters|jobs) [^;()"]+`)

// doAdvised does what the command in a message says by the routes that the command uses, and waits for its job. It returns the answer.
func (w *world) doAdvised(message string) answer {
	w.t.Helper()
	command := strings.Fields(commandInText.FindString(message))
	if len(command) < 2 {
		w.t.Fatalf("no command in %q", message)
	}
	var args []string
	query := url.Values{}
	for _, word := range command[2:] {
		switch flag, is := strings.CutPrefix(word, "--"); {
		case !is:
			args = append(args, strings.Trim(word, "'"))
		case flag == "wait", flag == "watch", flag == "repository":
		default:
			query.Set(flag, "true")
		}
	}
	text := ""
	if len(query) > 0 {
		text = "?" + query.Encode()
	}
	switch command[1] + " " + args[0] {
	case "dead-letters list":
		return w.mustRequest(http.MethodGet, "/dead-letters?repository="+args[1], http.StatusOK)
	case "dead-letters retry":
		return w.mustRequest(http.MethodPost, "/dead-letters/"+args[1]+"/retry", http.StatusAccepted)
	case "dead-letters discard":
		return w.mustRequest(http.MethodDelete, "/dead-letters/"+args[1], http.StatusNoContent)
	case "jobs ids":
		return w.mustRequest(http.MethodGet, "/jobs/"+args[1]+"/ids", http.StatusOK)
	case "jobs show":
		return w.mustRequest(http.MethodGet, "/jobs/"+args[1], http.StatusOK)
	}
	path := "/index/repository/" + url.PathEscape(args[0])
	for i, part := range []string{"/organization/", "/id/"} {
		if len(args) > i+1 {
			path += part + url.PathEscape(args[i+1])
		}
	}
	a := w.mustRequest(http.MethodPost, path+text, http.StatusAccepted)
	if id := a.get("jobId").String(); id != "" {
		w.awaitJob(id)
	}
	return a
}

// next returns what `tutti why` advises for a record.
func (w *world) next(study, id string) string {
	w.t.Helper()
	return w.mustRequest(http.MethodGet, recordPath(study, id), http.StatusOK).get("next").String()
}

// awaitNext waits until `tutti why` advises something about a record that contains text, and returns it.
func (w *world) awaitNext(study, id, text string) (said string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		said = w.next(study, id)
		return strings.Contains(said, text), said
	})
	return said
}

// wantHint fails unless an error has a code and a hint.
func wantHint(t *testing.T, err error, code core.Code, hint string) {
	t.Helper()
	if core.CodeOf(err) != code || core.HintOf(err) != hint {
		t.Fatalf("%v (%s, hint %q), want %s and the hint %q", err, core.CodeOf(err), core.HintOf(err), code, hint)
	}
}

// nothingToDo is what `tutti why` says of a record that is indexed.
const nothingToDo = "nothing to do: "

// TestAdviceOfLetters: whoever does what the hint of a dead letter says, in each of the ways that it names, gets its record indexed and the
// dead letter removed. Each hint names the field.
func TestAdviceOfLetters(t *testing.T) {
	t.Parallel()
	const fit = "does not fit its type in the index: the record holds a text, and the field takes "
	const remedies = "; fix the record, then retry; or if the type of the field has changed, run tutti index " + code + " --rebuild " +
		"(after describing the field in a mapping file (mappingFile), if most records hold another kind or its type is declared)"
	const rename = "rename it in the record, then retry"
	const blank = " is empty, or has nothing before, between or after its dots: " + rename
	const reserved = " is reserved for the index itself: " + rename
	w := startWorld(t, settings{})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	for _, id := range []string{"first", "second"} {
		w.put("S1", id, `"donor":{"age":7,"site":{"city":"Oslo"}},"visits":[{"on":{"day":1}}]`)
	}
	w.run("", "", core.JobSucceeded)
	cases := map[string]struct{ record, hint string }{
		"another type":            {`"donor":{"age":"old"}`, `the value of the field "donor.age" ` + fit + "a number (double)" + remedies},
		"value for an object":     {`"donor":{"site":"Oslo"}`, `the value of the field "donor.site" ` + fit + "an object" + remedies},
		"empty name":              {`"donor":{"":1}`, `the name of the field "donor."` + blank},
		"empty name in an array":  {`"visits":[{"a":1},{"":1}]`, `the name of the field "visits."` + blank},
		"name of a space":         {`"donor":{"site":{" ":1}}`, `the name of the field "donor.site. "` + blank},
		"name of a dot":           {`".":1`, `the name of the field "."` + blank},
		"dot at the begin":        {`".a":1`, `the name of the field ".a"` + blank},
		"two dots":                {`"a..b":1`, `the name of the field "a..b"` + blank},
		"metadata field":          {`"_id":"x"`, `the name of the field "_id"` + reserved},
		"metadata field, object":  {`"_source":{"a":1}`, `the name of the field "_source"` + reserved},
		"dots below a value":      {`"donor.age.unit":"years"`, `the name "donor.age.unit" stands for a field of the object "donor.age", which is a single value in the index: ` + rename},
		"dots in an inner object": {`"visits":[{"on.day.part":"noon"}]`, `the name "visits.on.day.part" stands for a field of the object "visits.on.day", which is a single value in the index: ` + rename},
	}
	for id, c := range cases {
		w.put("S1", id, c.record)
	}
	job := w.run("", "", core.JobPartial)
	listed := w.doAdvised(job.Get("error.message").String())
	if n := listed.get("deadLetters.#").Int(); n != int64(len(cases)) {
		t.Errorf("%d dead letters are listed, want %d", n, len(cases))
	}
	for id, letter := range w.byRecord("") {
		c := cases[id]
		if got := letter.Get("hint").String(); got != c.hint {
			t.Errorf("%s: the hint is %q, want %q (%s)", id, got, c.hint, letter.Get("engineReason"))
		}
	}
	for id := range cases { // the advice for one of them rebuilds the index
		w.put("S1", id, `"donor":{"age":8}`)
		w.doAdvised(w.awaitNext("S1", id, "; retry the dead letter with: "))
	}
	w.awaitDeadLetters("", 0)
	for id := range cases {
		w.awaitNext("S1", id, nothingToDo)
	}

	for _, id := range []string{"first", "second", "another type"} { // the type of the field has changed
		w.put("S1", id, `"donor":{"age":"old"}`)
	}
	for id := range cases {
		w.put("S1", id, `"donor":{"age":"old"}`)
	}
	w.trigger("S1", "first")
	letter := w.awaitDeadLetters("", 1)[0]
	w.doAdvised(letter.Get("hint").String())
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestAdviceOfLimits: so for the dead letters of records that are too large or have an id that cannot be requested, and of those that a
// retry refuses.
func TestAdviceOfLimits(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{maxRecordBytes: 20_000})
	large, long := `"info":{"text":"`+strings.Repeat("x", 21_000)+`"}`, strings.Repeat("x", 513)
	for _, id := range []string{"smaller", "raised"} {
		w.put("S1", id, large)
	}
	w.put("S2", long, "")
	w.run("", "", core.JobPartial)
	all := w.awaitJob(w.retryAll("?reason=" + core.ReasonInvalidID))
	if said := all.Get("error.message").String(); !strings.Contains(said, "the retry of one by its id says why (tutti dead-letters retry ID)") {
		t.Errorf("the job is %s", all.Raw)
	}
	letters := w.byRecord("")
	refused := w.retry(letters[long], http.StatusConflict)
	if hint := refused.get("hint").String(); hint != "change the record's id in its repository, or discard the dead letter" &&
		hint != "change the record's id in its repository, run its organization, and discard the dead letter" {
		t.Errorf("the hint is %q", hint)
	}
	w.song.Delete(long)
	w.put("S2", "short", "")
	w.run("S2", "", core.JobSucceeded)
	w.mustRequest(http.MethodDelete, "/dead-letters/"+letters[long].Get("id").String(), http.StatusNoContent)
	w.awaitNext("S2", "short", nothingToDo)

	const hint = "the record is larger than index.maxRecordBytes, 20000 bytes; make it smaller or raise the limit, then retry"
	for _, id := range []string{"smaller", "raised"} {
		if got := letters[id].Get("hint").String(); got != hint {
			t.Errorf("%s: the hint is %q", id, got)
		}
	}
	w.put("S1", "smaller", "")
	w.doAdvised(w.awaitNext("S1", "smaller", "; retry the dead letter with: "))
	w.awaitDeadLetters("", 1)
	w.stop()
	w.set.maxRecordBytes = 30_000
	w.start()
	w.awaitPaused(false)
	w.doAdvised(w.awaitNext("S1", "raised", "; retry the dead letter with: "))
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestAdviceOfRecords: what `tutti why` advises for a record in each state makes the index as it should be, and /ready says no more that a
// repository was never indexed once it was.
func TestAdviceOfRecords(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 5)
	never := "repository " + code + ": never indexed; run tutti index " + code
	reasons := func() string { return w.ready().get("reasons").String() }
	w.eventually(wait, func() (bool, string) { return strings.Contains(reasons(), never), reasons() })
	w.doAdvised(w.awaitNext("S1", ids[0], "the record is not in the index; index it with: "))
	w.awaitNext("S1", ids[0], nothingToDo)
	w.doAdvised(never)
	w.eventually(wait, func() (bool, string) { return !strings.Contains(reasons(), "never indexed"), reasons() })
	w.wantConverged()

	w.put("S1", ids[1], `"changed":1`)
	w.doAdvised(w.awaitNext("S1", ids[1], "the index holds another state than the repository; index it with: "))
	w.awaitNext("S1", ids[1], nothingToDo)
	w.song.SetState(ids[2], "UNPUBLISHED")
	w.doAdvised(w.awaitNext("S1", ids[2], "; its documents are removed with: "))
	w.awaitConverged(wait)
	w.reject("S1", 1)
	w.song.Delete("bad-S1-0")
	w.doAdvised(w.awaitNext("S1", "bad-S1-0", "; discard its dead letter with: "))
	w.awaitDeadLetters("", 0)

	w.put("S1", "bad", broken)
	list := w.postIDs(runPath("S1"), ids[0]+"\nbad\n", http.StatusAccepted)
	job := w.awaitJob(list.get("jobId").String())
	why := w.doAdvised(job.Get("error.message").String())
	if !strings.Contains(string(why.raw), `"bad"`) || !strings.Contains(string(why.raw), `"reason"`) {
		t.Errorf("the ids of the job: %s; the job is %s", why.raw, job.Raw)
	}
}

// TestAdviceOfRebuilds: what the errors of rollbacks and deletions advise while a rebuild, or the job after one, runs leads to the index
// that was requested; a run that removes too much says how it does nevertheless.
func TestAdviceOfRebuilds(t *testing.T) {
	t.Parallel()
	var hold atomic.Pointer[chan struct{}]
	w := startWorld(t, settings{song: testkit.SongConfig{BeforePage: func(*testkit.SongServer, int, testkit.PageCall) {
		if held := hold.Load(); held != nil {
			<-*held
		}
	}}})
	block := func() (free func()) {
		held := make(chan struct{})
		hold.Store(&held)
		free = sync.OnceFunc(func() {
			hold.Store(nil)
			close(held)
		})
		t.Cleanup(free)
		return free
	}
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", 20)
	w.run("", "", core.JobSucceeded)
	w.run("", "?rebuild=true", core.JobSucceeded)
	free := block()
	refused := func(method, path, hint string) {
		t.Helper()
		if a := w.mustRequest(method, runPath("")+path, http.StatusConflict); a.get("hint").String() != hint {
			t.Errorf("%s %s: %s, want the hint %q", method, path, a.raw, hint)
		}
	}
	cancel := func(job string) {
		t.Helper()
		w.mustRequest(http.MethodDelete, "/jobs/"+job, http.StatusOK)
		free()
		if j := w.awaitJob(job); j.Get("state").String() != string(core.JobCancelled) {
			t.Errorf("the job is %s", j.Raw)
		}
	}
	job := w.startRun("", "?rebuild=true")
	w.eventually(wait, func() (bool, string) {
		return w.app.Index().Check(t.Context(), core.NextAlias(w.alias)) == nil, w.job(job).Raw
	})
	const busy = "cancel the job of the rebuild, or wait for its end"
	refused(http.MethodPost, "/rollback", busy)
	refused(http.MethodDelete, "/previous", busy)
	cancel(job)
	free = block()
	var back string
	w.eventually(wait, func() (bool, string) { // a cancelled rebuild ends when its page does
		a, err := w.request(http.MethodPost, runPath("")+"/rollback")
		back = a.get("jobId").String()
		return err == nil && a.status == http.StatusAccepted, string(a.raw)
	})
	const ended = "wait for its end, or cancel it"
	refused(http.MethodPost, "/rollback", ended)
	refused(http.MethodDelete, "/previous", ended)
	cancel(back)
	w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)

	for _, id := range ids[:15] {
		w.song.SetState(id, "UNPUBLISHED")
	}
	guarded := w.run("", "", core.JobPartial)
	if said := guarded.Get("error.message").String(); !strings.Contains(said, "Run again with force to remove them") {
		t.Errorf("the job is %s", guarded.Raw)
	}
	w.run("", "?force=true", core.JobSucceeded)
	w.awaitConverged(wait)
}

// TestAdviceOfMissedMessages: when the job that replaces lost messages is cancelled, /ready advises a command that does.
func TestAdviceOfMissedMessages(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	holding, release := make(chan struct{}), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	w := newWorld(t, settings{repository: b.notifications(songTopic), song: testkit.SongConfig{BeforePage: func(*testkit.SongServer, int, testkit.PageCall) {
		select {
		case <-holding:
			<-release
		default:
		}
	}}})
	ids := w.fill("S1", 5)
	w.start()
	w.run("", "", core.JobSucceeded)
	b.produce(songTopic, 0, songEvent(code, "S1", ids[0], "PUBLISHED"))
	w.eventually(wait, func() (bool, string) {
		lag := w.metric("tutti_kafka_lag_messages", "topic", songTopic)
		return lag == 0 && w.outcomes(core.OutcomeIndexed) > 5, fmt.Sprint(lag)
	})
	w.stop()
	w.put("S1", ids[1], `"changed":1`)
	b.produce(songTopic, 0, songEvent(code, "S1", ids[1], "PUBLISHED"))
	if err := b.cluster.DeleteRecords(songTopic, 0, 2); err != nil {
		t.Fatal(err)
	}
	close(holding)
	w.start()
	t.Cleanup(free)
	reason := func(text string) (said string) {
		t.Helper()
		w.eventually(wait, func() (bool, string) {
			a := w.awaitReady()
			said = a.get("reasons.#(%\"*before they were read*\")").String()
			return strings.Contains(said, text), string(a.raw)
		})
		return said
	}
	reason(" compares the repository with its index")
	job := w.mustRequest(http.MethodGet, "/jobs", http.StatusOK).get("jobs").Array()[0]
	w.mustRequest(http.MethodDelete, "/jobs/"+job.Get("id").String(), http.StatusOK)
	free()
	w.awaitJob(job.Get("id").String())
	w.doAdvised(reason("; run tutti index --difference " + code))
	w.eventually(wait, func() (bool, string) {
		a := w.awaitReady()
		return !gjson.GetBytes(a.raw, "reasons.#(%\"*before they were read*\")").Exists(), string(a.raw)
	})
	w.awaitConverged(wait)
}

// TestAdviceOfPlan: the steps that `tutti mapping plan` lists for a field that can be added make the index as the mapping file says.
func TestAdviceOfPlan(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mapping.json")
	write := func(properties string) {
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"properties":{"analysisId":{"type":"keyword"}%s}}`, properties), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	w := startWorld(t, settings{repository: fmt.Sprintf("mappingFile: %q", file)})
	w.put("S1", "A1", "")
	w.run("", "", core.JobSucceeded)
	write(`,"donor":{"properties":{"age":{"type":"long"}}}`)
	plan := func() answer {
		t.Helper()
		return w.mustRequest(http.MethodGet, runPath("")+"/mapping", http.StatusOK)
	}
	next := plan().get("next").Array()
	if len(next) != 2 || next[0].String() != "restart tutti, which adds the fields" {
		t.Fatalf("the plan is %s", plan().raw)
	}
	w.stop()
	w.start()
	w.awaitPaused(false)
	w.doAdvised(next[1].String())
	if a := plan(); a.get("difference").Bool() || len(a.get("next").Array()) != 0 {
		t.Errorf("the plan is %s", a.raw)
	}
	w.awaitConverged(wait)
}
