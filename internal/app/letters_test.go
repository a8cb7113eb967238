package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// broken is a member that no mapping accepts, fixed the same one with a valid value.
const (
	broken = `"analysisType":"not an object"`
	fixed  = `"analysisType":{"name":"fixed","version":1}`
)

// reject puts n records that the index rejects into a study, waits for their dead letters, and returns them by record.
func (w *world) reject(study string, n int) map[string]gjson.Result {
	w.t.Helper()
	var events []string
	for i := range n {
		id := fmt.Sprintf("bad-%s-%d", study, i)
		w.put(study, id, broken)
		events = append(events, songEvent(code, study, id, "PUBLISHED"))
	}
	before := len(w.deadLetters("?limit=1000"))
	w.postBody(webhook, array(events...), http.StatusAccepted)
	w.awaitDeadLetters("?limit=1000", before+n)
	return w.byRecord("?limit=1000&reason=rejected")
}

// byRecord returns the dead letters that a query selects by their records.
func (w *world) byRecord(query string) map[string]gjson.Result {
	w.t.Helper()
	letters := map[string]gjson.Result{}
	for _, l := range w.deadLetters(query) {
		letters[l.Get("recordId").String()] = l
	}
	return letters
}

// retry retries a dead letter, and fails the test unless the answer has a status.
func (w *world) retry(letter gjson.Result, status int) answer {
	w.t.Helper()
	return w.mustRequest(http.MethodPost, "/dead-letters/"+letter.Get("id").String()+"/retry", status)
}

// TestLettersList: dead letters are listed by repository and reason, a page at a time, without their documents.
func TestLettersList(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.reject("S1", 9)
	for i := range 4 {
		w.postBody(webhook, fmt.Sprintf(`{"studyId":"S%d"}`, i), http.StatusBadRequest)
	}
	for query, want := range map[string]int{
		"": 13, "?repository=" + code: 13, "?repository=song.other": 0, "?reason=rejected": 9, "?reason=not_understood": 4,
		"?reason=crash_loop": 0, "?repository=" + code + "&reason=rejected": 9, "?limit=5": 5, "?reason=not_understood&limit=3": 3,
	} {
		a := w.mustRequest(http.MethodGet, "/dead-letters"+query, http.StatusOK)
		list := a.get("deadLetters")
		if !list.IsArray() || len(list.Array()) != want {
			t.Errorf("%q returns %d dead letters, want %d", query, len(list.Array()), want)
		}
		if more := strings.Contains(query, "limit"); a.get("nextCursor").Exists() != more {
			t.Errorf("%q has a cursor: %v, want %v", query, !more, more)
		}
		if one := list.Get("0"); one.Get("document").Exists() || one.Get("documentText").Exists() {
			t.Errorf("%q returns documents: %s", query, list.Raw)
		}
	}
	var all []string
	var times []string
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		a := w.mustRequest(http.MethodGet, "/dead-letters?limit=5"+cursor, http.StatusOK)
		for _, l := range a.get("deadLetters").Array() {
			all = append(all, l.Get("id").String())
			times = append(times, l.Get("lastAt").Time().Format("15:04:05.000000000"))
		}
		if cursor = a.get("nextCursor").String(); cursor != "" {
			cursor = "&cursor=" + cursor
		}
	}
	if slices.Sort(all); pages != 3 || len(all) != 13 || len(slices.Compact(all)) != 13 {
		t.Errorf("%d dead letters on %d pages: %v", len(all), pages, all)
	}
	if first, last := times[:4], times[4:]; slices.Min(first) < slices.Max(last) {
		t.Errorf("the newest are not first: %v", times)
	}
	for query, detail := range map[string]string{
		"?cursor=!":              "the cursor is not one of this list",
		"?cursor=0":              "the cursor is not one of this list",
		"?limit=0":               `query parameter limit must be a whole number from 1 to 1000, not "0"`,
		"?limit=many":            `query parameter limit must be a whole number from 1 to 1000, not "many"`,
		"?reason=" + "Rejected":  "query parameter reason must be one of [rejected too_large invalid_id upstream_error unknown_repository crash_loop not_understood conflict]",
		"?repository=..":         "query parameter repository must not be a relative path segment",
		"?reasons=rejected":      `unknown query parameter "reasons"`,
		"?reason=a&reason=b":     "query parameter reason is given 2 times",
		"?cursor=" + "%zz":       "the query string is malformed",
		"?repository=%00":        "query parameter repository contains a control character",
		"?limit=1001&repository": `query parameter limit must be a whole number from 1 to 1000, not "1001"`,
	} {
		if a := w.mustRequest(http.MethodGet, "/dead-letters"+query, http.StatusBadRequest); a.get("detail").String() != detail {
			t.Errorf("%q: %s", query, a.raw)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := w.mustRequest(method, "/dead-letters/none", http.StatusNotFound); a.get("detail").String() != "no such dead letter" {
			t.Errorf("%s of none: %s", method, a.raw)
		}
	}
	if a := w.mustRequest(http.MethodPost, "/dead-letters/none/retry", http.StatusNotFound); a.get("detail").String() != "no such dead letter" {
		t.Errorf("retry of none: %s", a.raw)
	}
}

// TestLetterBodies: the configured number of dead letters of records keep their document.
func TestLetterBodies(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{more: "deadLetters: {maxBodies: 1}\n"})
	w.reject("S1", 1)
	for id, listed := range w.reject("S2", 1) {
		a := w.mustRequest(http.MethodGet, "/dead-letters/"+listed.Get("id").String(), http.StatusOK)
		if kept := a.get("document").Exists(); kept != (id == "bad-S1-0") || kept == a.get("truncated").Bool() {
			t.Errorf("%s: %s", id, a.raw)
		}
	}
}

// TestLettersShow: a dead letter shows the document, the engine's reason and what was being done; a large document is
// truncated, and the export returns every dead letter whole.
func TestLettersShow(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	const size = 300 << 10
	w.put("S1", "large", broken+`,"info":{"text":"`+strings.Repeat("x", size)+`"}`)
	w.put("S1", "small", broken)
	job := w.run("S1", "", core.JobPartial)
	if n := job.Get("totals.rejected").Int(); n != 2 {
		t.Errorf("%d documents were rejected, want 2: %s", n, job.Raw)
	}
	for id, listed := range w.byRecord("") {
		a := w.mustRequest(http.MethodGet, "/dead-letters/"+listed.Get("id").String(), http.StatusOK)
		if a.get("recordId").String() != id || a.get("organization").String() != "S1" || a.get("repository").String() != code ||
			a.get("reason").String() != core.ReasonRejected || !strings.HasPrefix(a.get("hint").String(), `the value of the field "analysisType" does not fit its type in the index: the record holds `) ||
			a.get("engineType").String() == "" || a.get("engineReason").String() == "" || a.get("attempts").Int() != 1 ||
			a.get("lastAt").Time().Before(a.get("firstAt").Time()) || a.get("firstAt").Time().IsZero() || a.get("jobId").String() != job.Get("id").String() ||
			a.get("request.scope").String() == "" {
			t.Errorf("dead letter of %s: %.2000s", id, a.raw)
		}
		record, _ := w.song.Analysis(id)
		if id == "small" {
			document := []byte(a.get("document").Raw)
			sum := sha256.Sum256(document)
			if own := w.withoutRepositories(id, document); own != string(record.Body) || a.get("truncated").Bool() ||
				a.get("size").Int() != int64(len(document)) || a.get("sha256").String() != hex.EncodeToString(sum[:]) {
				t.Errorf("the document of %s: %s", id, a.raw)
			}
			continue
		}
		text := a.get("documentText").String()
		if !a.get("truncated").Bool() || len(text) != core.MaxDeadLetterBytes || a.get("size").Int() < size ||
			a.get("document").Exists() || !strings.HasPrefix(text, spliced) {
			t.Errorf("the document of %s: truncated %s, %d bytes of %d", id, a.get("truncated"), len(text), a.get("size").Int())
		}
	}

	lines, trailer := w.export("")
	if len(lines) != 2 || trailer != "" {
		t.Errorf("%d lines of the export, want 2; trailer %q", len(lines), trailer)
	}
	for _, l := range lines {
		one := w.mustRequest(http.MethodGet, "/dead-letters/"+l.Get("id").String(), http.StatusOK)
		if l.Raw != string(bytes.TrimSpace(one.raw)) {
			t.Errorf("the export has %.500s, the letter is %.500s", l.Raw, one.raw)
		}
	}
	lines, trailer = w.export("?limit=1")
	if len(lines) != 1 || trailer == "" {
		t.Fatalf("%d lines of an export of one, want 1; trailer %q", len(lines), trailer)
	}
	rest, trailer := w.export("?limit=5&cursor=" + trailer)
	if len(rest) != 1 || trailer != "" || rest[0].Get("id").String() == lines[0].Get("id").String() {
		t.Errorf("%d lines behind the first, want the other; trailer %q", len(rest), trailer)
	}
}

// export returns the dead letters exported as NDJSON, and the next cursor.
func (w *world) export(query string) ([]gjson.Result, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/dead-letters"+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		w.t.Fatalf("exporting: status %d, %v", resp.StatusCode, resp.Header)
	}
	var lines []gjson.Result
	scanner := bufio.NewScanner(resp.Body)
	scanner.Buffer(nil, 4<<20)
	for scanner.Scan() {
		if !gjson.ValidBytes(scanner.Bytes()) {
			w.t.Errorf("a line is no JSON: %.300s", scanner.Bytes())
		}
		lines = append(lines, gjson.Parse(scanner.Text()))
	}
	if err := scanner.Err(); err != nil {
		w.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return lines, resp.Trailer.Get("Next-Cursor")
}

// TestLettersRetry: a retry fetches the record again; a success clears the dead letter, another failure is added to it.
func TestLettersRetry(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 3)
	w.run("", "", core.JobSucceeded)
	letters := w.reject("S1", 4)
	one, two, three, four := letters["bad-S1-0"], letters["bad-S1-1"], letters["bad-S1-2"], letters["bad-S1-3"]

	w.put("S1", "bad-S1-0", fixed)
	a := w.retry(one, http.StatusAccepted)
	if !a.get("successful").Bool() || a.get("id").String() != one.Get("id").String() || a.get("repository").String() != code ||
		a.get("organization").String() != "S1" || a.get("recordId").String() != "bad-S1-0" || a.get("requestId").String() == "" {
		t.Errorf("the answer to a retry: %s", a.raw)
	}
	w.awaitDeadLetters("", 3)
	w.mustRequest(http.MethodGet, "/dead-letters/"+one.Get("id").String(), http.StatusNotFound)
	w.awaitOutcomes(core.OutcomeIndexed, 4)

	w.retry(two, http.StatusAccepted) // still broken
	raised := func(id string, attempts int64) gjson.Result {
		t.Helper()
		var l gjson.Result
		w.eventually(wait, func() (bool, string) {
			l = w.byRecord("")[id]
			return l.Get("attempts").Int() == attempts, l.Raw
		})
		return l
	}
	again := raised("bad-S1-1", 2)
	if again.Get("id").String() != two.Get("id").String() || again.Get("firstAt").String() != two.Get("firstAt").String() ||
		!again.Get("lastAt").Time().After(two.Get("lastAt").Time()) || again.Get("request.cause").String() != "rest" {
		t.Errorf("the dead letter after a failed retry: %s\nbefore: %s", again.Raw, two.Raw)
	}
	w.trigger("S1", "bad-S1-1")
	raised("bad-S1-1", 3)

	w.put("S1", "bad-S1-1", fixed) // a trigger that succeeds clears it too
	w.trigger("S1", "bad-S1-1")
	w.awaitDeadLetters("", 2)

	w.song.SetState("bad-S1-2", "UNPUBLISHED") // nothing to index any more
	w.retry(three, http.StatusAccepted)
	w.awaitDeadLetters("", 1)

	w.song.Delete("bad-S1-3") // nor here, as a run finds
	w.run("S1", "", core.JobSucceeded)
	w.retry(four, http.StatusAccepted)
	w.awaitDeadLetters("", 0)
	w.awaitConverged(wait)
}

// TestLettersRetryStale: the stored copy is never written over newer data.
func TestLettersRetryStale(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	letter := w.reject("S1", 1)["bad-S1-0"]
	release := make(chan struct{})
	w.put("S1", "bad-S1-0", fixed+`,"experiment":{"number":1}`)
	w.song.Fail(testkit.Fault{Times: 1, Release: release})
	asked := w.song.RecordRequests("bad-S1-0")
	w.retry(letter, http.StatusAccepted)
	w.eventually(wait, func() (bool, string) {
		return w.song.RecordRequests("bad-S1-0") > asked, "nobody asks for the record"
	})
	w.put("S1", "bad-S1-0", fixed+`,"experiment":{"number":2}`)
	close(release)
	w.awaitDeadLetters("", 0)
	w.put("S1", "bad-S1-0", fixed+`,"experiment":{"number":3}`)
	w.trigger("S1", "bad-S1-0")
	w.awaitConverged(wait)
}

// TestLettersRetryAll: a retry of all retries the dead letters of a repository and a reason, and counts those that it cannot retry; the
// others stay. A discarded one is gone.
func TestLettersRetryAll(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	const n = 150
	w.reject("S1", n)
	long := strings.Repeat("x", 513)
	w.put("S2", long, "")
	w.run("S2", "", core.JobPartial)
	w.postBody(webhook, `{"studyId":"S1"}`, http.StatusBadRequest)
	w.awaitDeadLetters("?limit=1000", n+2)
	for i := range n {
		w.put("S1", fmt.Sprintf("bad-S1-%d", i), fixed)
	}
	retryAll := func(query string, retried, refused int64) {
		t.Helper()
		j := w.awaitJob(w.retryAll(query))
		if j.Get("totals.retried").Int() != retried || j.Get("totals.rejected").Int() != refused {
			t.Errorf("retry of %q: %s, want %d retried and %d refused", query, j.Raw, retried, refused)
		}
	}
	retryAll("?repository=song.other", 0, 0)
	retryAll("?organization=S2&repository="+code, 0, 1)
	retryAll("?reason=upstream_error", 0, 0)
	retryAll("?reason=not_understood", 0, 1)
	retryAll("?repository="+code+"&reason=rejected", n, 0)
	w.awaitDeadLetters("?limit=1000", 2)
	retryAll("", 0, 2)
	w.song.Delete(long) // its id cannot be indexed
	w.awaitConverged(wait)

	letter := w.byRecord("?reason=invalid_id")[long]
	a := w.retry(letter, http.StatusConflict)
	if a.get("detail").String() != "the record cannot be requested by its id" || a.get("hint").String() !=
		"change the record's id in its repository, run its organization, and discard the dead letter" {
		t.Errorf("retry of an id that is too long: %s", a.raw)
	}
	for _, l := range w.deadLetters("") {
		path := "/dead-letters/" + l.Get("id").String()
		if a := w.mustRequest(http.MethodDelete, path, http.StatusNoContent); len(a.raw) != 0 {
			t.Errorf("discarding answers %s", a.raw)
		}
		w.mustRequest(http.MethodDelete, path, http.StatusNotFound)
		w.mustRequest(http.MethodGet, path, http.StatusNotFound)
	}
	if list := w.deadLetters(""); len(list) != 0 {
		t.Errorf("dead letters after all were discarded: %s", list)
	}
}

// TestLettersRestart: dead letters outlive the process, and are cleared after it as before.
func TestLettersRestart(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	before := w.reject("S1", 3)
	w.stop()
	w.start()
	after := w.byRecord("")
	for id, l := range before {
		if after[id].Raw != l.Raw {
			t.Errorf("the letter of %s is %s, was %s", id, after[id].Raw, l.Raw)
		}
		w.put("S1", id, fixed)
	}
	if n := int(w.metric("tutti_dead_letters", "repository", code, "reason", core.ReasonRejected)); n != 3 || len(after) != 3 {
		t.Errorf("tutti_dead_letters is %d and %d are listed, want 3", n, len(after))
	}
	const success = "tutti_last_success_timestamp_seconds"
	if at := w.metric(success, "repository", code); at != 0 {
		t.Errorf("%s is %f where nothing was written", success, at)
	}
	began := float64(time.Now().UnixMilli()) / 1000
	w.run("S1", "", core.JobSucceeded)
	if at := w.metric(success, "repository", code); at < began {
		t.Errorf("%s is %f, the run began at %f", success, at, began)
	}
	w.awaitDeadLetters("", 0)
	w.wantConverged()
	w.stop()
	w.start()
	if at := w.metric(success, "repository", code); at < began {
		t.Errorf("after a start %s is %f, the run began at %f", success, at, began)
	}
}

// TestLettersOfKafka: a message that cannot be parsed is one dead letter, however often it is redelivered. An id that is too long for a
// request is one, whose retry returns a hint. A retry handles a message once its repository is configured.
func TestLettersOfKafka(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	w := newWorld(t, settings{repository: b.notifications(songTopic), more: b.requests()})
	w.fill("S1", 10)
	w.start()
	w.awaitPaused(false)
	long := songEvent(code, "S1", strings.Repeat("x", 513), "PUBLISHED")
	b.produce(songTopic, 0, long, long, long)
	b.produce(requestTopic, 0, maestroRequest("song.later", "S9", ""))
	var list []gjson.Result
	w.eventually(wait, func() (bool, string) {
		list = w.deadLetters("?reason=not_understood")
		return len(list) == 1 && list[0].Get("attempts").Int() == 3 && len(w.deadLetters("")) == 2, fmt.Sprint(list)
	})
	if got := list[0].Get("position").String(); !strings.HasPrefix(got, "partition 0, offset ") {
		t.Errorf("position %q", got)
	}
	whole := w.mustRequest(http.MethodGet, "/dead-letters/"+list[0].Get("id").String(), http.StatusOK)
	if whole.get("document").Raw != long || len(whole.get("recordId").String()) != 513 {
		t.Errorf("the message that is kept: %s", whole.raw)
	}
	a := w.retry(list[0], http.StatusConflict)
	if a.get("detail").String() != "the message still cannot be used: analysisId has 513 bytes, the limit is 512" ||
		a.get("hint").String() != "have a corrected message sent, or discard the dead letter" {
		t.Errorf("retry: %s", a.raw)
	}
	later := w.deadLetters("?reason=unknown_repository")[0]
	w.retry(later, http.StatusConflict)

	alias := w.alias + "-later"
	w.stop()
	other, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	other.PutAll(dataset.GenerateAnalyses(4, "S9", 5)...)
	w.addRepository(fmt.Sprintf("code: song.later\ntype: song\nurl: %q\nindexName: %s", other.URL(), alias), alias)
	w.start()
	w.awaitPaused(false)
	w.retry(later, http.StatusAccepted)
	w.awaitDeadLetters("", 1)
	w.eventually(wait, func() (bool, string) {
		if err := w.app.Index().Refresh(context.WithoutCancel(t.Context()), alias); err != nil {
			return false, err.Error()
		}
		n, err := w.app.Index().Count(t.Context(), alias, core.IndexScope{})
		return err == nil && n == 5, fmt.Sprintf("%d documents, %v", n, err)
	})
}
