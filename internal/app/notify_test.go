package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/ingest/signing"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// webhook is the path of the world's notifications.
const webhook = "/notifications/" + code

// tryPostBody posts a body; headers are listed as name, value, name, value.
func (w *world) tryPostBody(path, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.t.Context()), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, raw: raw}, err
}

// postBody posts a body, and fails the test unless the answer has a status.
func (w *world) postBody(path, body string, status int, headers ...string) answer {
	w.t.Helper()
	a, err := w.tryPostBody(path, body, headers...)
	if err != nil {
		w.t.Fatalf("POST %s: %v", path, err)
	}
	if a.status != status {
		w.t.Fatalf("POST %s %.300s: status %d, want %d: %s", path, body, a.status, status, a.raw)
	}
	return a
}

// songEvent is a message of Song about an analysis; Song sends updates in any state as PUBLISH.
func songEvent(server, study, id, state string) string {
	return fmt.Sprintf(`{"action":"PUBLISH","analysisId":%s,"studyId":%s,"state":%s,"songServerId":%s,"analysis":{"analysisId":"another","info":{"a":[1]}}}`,
		quoted(id), quoted(study), quoted(state), quoted(server))
}

// lyricEvent is a message of Lyric about a record, with its flat data.
func lyricEvent(organization, id string, valid bool) string {
	return fmt.Sprintf(`{"action":"UPDATE","categoryId":1,"entityName":"donor","isValid":%v,"organization":%s,"systemId":%s,"data":{"a":"b"}}`,
		valid, quoted(organization), quoted(id))
}

// maestroRequest is a request of Maestro's clients, with the non-empty members.
func maestroRequest(repository, study, id string) string {
	body := `{"repositoryCode":` + quoted(repository)
	if study != "" {
		body += `,"studyId":` + quoted(study)
	}
	if id != "" {
		body += `,"analysisId":` + quoted(id)
	}
	return body + `}`
}

func removalRequest(repository, study, id string) string {
	return strings.TrimSuffix(maestroRequest(repository, study, id), "}") + `,"removeAnalysis":true}`
}

func array(events ...string) string { return "[" + strings.Join(events, " ,\n") + "]" }

// accepted checks the 202 of a notification of n events that were all understood.
func accepted(t *testing.T, a answer, n int) {
	t.Helper()
	if !a.get("successful").Bool() || a.get("accepted").Int() != int64(n) || a.get("notUnderstood").Int() != 0 ||
		a.get("faults").Raw != "[]" || a.get("requestId").String() == "" ||
		a.get("requestId").String() != a.header.Get("X-Request-Id") {
		t.Errorf("the answer to %d events: %s", n, a.raw)
	}
}

// TestNotifySong: each form of an event, single and in an array, makes its record be indexed.
func TestNotifySong(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	one, two, three := w.fill("S1", 12), w.fill("S2", 8), w.fill("S3", 4)
	indexed := 0
	arrive := func(n int) {
		t.Helper()
		indexed += n
		w.awaitOutcomes(core.OutcomeIndexed, indexed)
	}
	accepted(t, w.postBody(webhook, songEvent(code, "S1", one[0], "PUBLISHED"), 202), 1)
	arrive(1)
	accepted(t, w.postBody(webhook, array(songEvent(code, "S1", one[1], "PUBLISHED"), songEvent(code, "S1", one[2], "UNPUBLISHED")), 202), 2)
	arrive(2)
	accepted(t, w.postBody(webhook, ` {"analysisId":`+quoted(one[3])+`,"studyId":"S1","extra":null}`, 202), 1) // of no server
	arrive(1)
	accepted(t, w.postBody(webhook, maestroRequest(code, "S1", one[4]), 202), 1)
	arrive(1)
	accepted(t, w.postBody(webhook, array(maestroRequest(code, "S1", one[5]), songEvent(code, "S1", one[6], "PUBLISHED")), 202), 2)
	arrive(2)
	if got := len(w.documents()); got != 7 {
		t.Errorf("%d documents, want the 7 of the events", got)
	}
	accepted(t, w.postBody(webhook, maestroRequest(code, "S2", ""), 202), 1)
	arrive(len(two))
	accepted(t, w.postBody(webhook, array(), 202), 0)
	accepted(t, w.postBody(webhook, array(maestroRequest(code, "", ""), maestroRequest(code, "", "")), 202), 2)
	w.awaitConverged(wait)
	jobs := w.mustRequest(http.MethodGet, "/jobs", http.StatusOK).get("jobs").Array()
	if len(jobs) != 2 || jobs[0].Get("scope").String() != "repository" || jobs[1].Get("organization").String() != "S2" ||
		jobs[0].Get("cause").String() != "webhook" {
		t.Errorf("jobs: %s", jobs)
	}
	w.awaitJob(jobs[0].Get("id").String())

	w.put("S3", three[0], `"experiment":{"changed":true}`)
	w.postBody(webhook, songEvent(code, "S3", three[0], "PUBLISHED"), 202)
	w.awaitConverged(wait)
	w.song.SetState(three[0], "UNPUBLISHED")
	w.postBody(webhook, songEvent(code, "S3", three[0], "PUBLISHED"), 202) // late
	w.awaitConverged(wait)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestNotifyLyric: an event of a tabular repository makes the compound record be fetched, and decides nothing itself.
func TestNotifyLyric(t *testing.T) {
	t.Parallel()
	w := startWorld(t, tabular(settings{}))
	ids := w.addRecords("O1", 10)
	w.lyric.SetValid(ids[0], false)
	accepted(t, w.postBody(webhook, lyricEvent("O1", ids[0], true), 202), 1)
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	var events []string
	for _, id := range ids[1:] {
		events = append(events, lyricEvent("O1", id, false))
	}
	accepted(t, w.postBody(webhook, array(events...), 202), 9)
	w.awaitLyricConverged()
	accepted(t, w.postBody(webhook, removalRequest(code, "O1", ids[1]), 202), 1)
	w.awaitOutcomes(core.OutcomeRemoved, 2)
	if documents := w.lyricDocuments(); len(documents) != 8 {
		t.Errorf("%d documents after a removal, want 8", len(documents))
	}
	accepted(t, w.postBody(webhook, maestroRequest(code, "O1", ""), 202), 1)
	w.awaitLyricConverged()
	for event, detail := range map[string]string{
		songEvent(code, "O1", "a", "PUBLISHED"):                         "analysisId is not in the events of a repository of type lyric",
		strings.Replace(lyricEvent("O1", "a", true), ":1,", ":2,", 1):   `categoryId names another server, "2"`,
		strings.Replace(lyricEvent("O1", "a", true), `"O1"`, `null`, 1): "organization is missing",
	} {
		if a := w.postBody(webhook, event, 400); a.get("detail").String() != detail {
			t.Errorf("%s: %s", event, a.raw)
		}
	}
}

// TestNotifyRefuses: the answer names the error of a notification, and an invalid event is kept.
func TestNotifyRefuses(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{maxBodyBytes: 64 << 10})
	ids := w.fill("S1", 5)
	w.run("", "", core.JobSucceeded)
	deep := strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600)
	tests := []struct {
		name, path, body, contentType string
		status                        int
		code, detail                  string
		pointer                       string // of an event that is kept as a dead letter
	}{
		{"another server", webhook, songEvent("song.other", "S1", ids[0], "PUBLISHED"), "", 400, "not_understood", `songServerId names another server, "song.other"`, "/songServerId"},
		{"another repository", webhook, maestroRequest("song.other", "S1", ids[0]), "", 400, "not_understood", `repositoryCode names another server, "song.other"`, "/repositoryCode"},
		{"without ids", webhook, `{"state":"PUBLISHED"}`, "", 400, "not_understood", "the event has none of the members repositoryCode, systemId and analysisId", "."},
		{"without a study", webhook, `{"analysisId":"a"}`, "", 400, "not_understood", "studyId is missing", "/studyId"},
		{"an id that is a number", webhook, `{"analysisId":1,"studyId":"S1"}`, "", 400, "not_understood", "analysisId must be a string", "/analysisId"},
		{"an id that is too long", webhook, songEvent(code, "S1", strings.Repeat("x", 513), "PUBLISHED"), "", 400, "not_understood", "analysisId has 513 bytes, the limit is 512", "/analysisId"},
		{"an id twice", webhook, `{"analysisId":"a","studyId":"S1","analysisId":"b"}`, "", 400, "not_understood", "analysisId occurs twice", "/analysisId"},
		{"the removal of a study", webhook, removalRequest(code, "S1", ""), "", 400, "not_understood", "analysisId is missing: removeAnalysis exists for one record only", "/analysisId"},
		{"an event of Lyric", webhook, lyricEvent("S1", ids[0], true), "", 400, "not_understood", "systemId is not in the events of a repository of type song", "/systemId"},
		{"in an array", webhook, array(`{}`), "", 400, "not_understood", "the event has none of the members repositoryCode, systemId and analysisId", "/0"},
		{"broken JSON", webhook, `{"analysisId":"a",`, "", 400, "invalid", "the body is not valid JSON", ""},
		{"too deep", webhook, deep, "", 400, "invalid", "the body is nested deeper than 500 levels", ""},
		{"a string", webhook, `"a"`, "", 400, "invalid", "the body is neither a JSON object nor an array", ""},
		{"an array of strings", webhook, array(songEvent(code, "S1", ids[0], "PUBLISHED"), `"a"`), "", 400, "invalid", "/1 is not a JSON object", ""},
		{"no body", webhook, " \n", "", 400, "invalid", "the body is empty", ""},
		{"another content type", webhook, songEvent(code, "S1", ids[0], "PUBLISHED"), "text/plain", 415, "unsupported_media_type", "the body is not declared as JSON", ""},
		{"too large", webhook, `{"x":"` + strings.Repeat("x", 64<<10) + `"}`, "", 413, "too_large", "the body is over the limit of 65536 bytes", ""},
		{"unknown repository", "/notifications/song.other", songEvent("song.other", "S1", ids[0], "PUBLISHED"), "", 404, "not_found", `repository "song.other" is not configured`, ""},
		{"an unknown parameter", webhook + "?force=true", `{}`, "", 400, "invalid", `unknown query parameter "force"`, ""},
	}
	kept := map[string]bool{}
	for _, tc := range tests {
		headers := []string{"X-Request-Id", "request-of-a-test"}
		if tc.contentType != "" {
			headers = append(headers, "Content-Type", tc.contentType)
		}
		a := w.postBody(tc.path, tc.body, tc.status, headers...)
		if a.get("code").String() != tc.code || a.get("detail").String() != tc.detail ||
			a.header.Get("Content-Type") != "application/problem+json" || a.get("requestId").String() != "request-of-a-test" {
			t.Errorf("%s: %s", tc.name, a.raw)
		}
		letter := a.get("violations.0.deadLetterId").String()
		if pointer := a.get("violations.0.pointer").String(); tc.pointer != "" && (pointer != strings.TrimSuffix(tc.pointer, ".") || letter == "") {
			t.Errorf("%s: violations %s, want the pointer %q and a dead letter", tc.name, a.get("violations").Raw, tc.pointer)
		}
		if tc.pointer == "" {
			if a.get("violations").Exists() {
				t.Errorf("%s: violations in %s", tc.name, a.raw)
			}
			continue
		}
		kept[letter] = true
		l := w.mustRequest(http.MethodGet, "/dead-letters/"+letter, http.StatusOK)
		document := strings.TrimSuffix(strings.TrimPrefix(tc.body, "["), "]")
		if l.get("reason").String() != core.ReasonNotUnderstood || l.get("source").String() != "webhook" ||
			l.get("repository").String() != code || l.get("hint").String() != tc.detail || l.get("document").Raw != document {
			t.Errorf("%s: dead letter %s", tc.name, l.raw)
		}
	}
	if n := len(w.mustRequest(http.MethodGet, "/dead-letters?reason=not_understood", http.StatusOK).get("deadLetters").Array()); n != len(kept) {
		t.Errorf("%d dead letters, the answers list %d", n, len(kept))
	}
	if a := w.mustRequest(http.MethodGet, webhook, http.StatusMethodNotAllowed); a.header.Get("Allow") != "POST" {
		t.Errorf("GET: Allow %q: %s", a.header.Get("Allow"), a.raw)
	}
	w.wantConverged()
}

// TestNotifyPartly: the valid events of an array are done, the others are in the answer and kept; a retry of their dead letter returns
// the error that remains.
func TestNotifyPartly(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 2)
	body := array(songEvent(code, "S1", ids[0], "PUBLISHED"), `{"studyId":"S1"}`, songEvent("song.other", "S1", "a", "PUBLISHED"),
		songEvent(code, "S1", ids[1], "PUBLISHED"))
	for range 2 { // the same again is the same letters
		a := w.postBody(webhook, body, http.StatusAccepted)
		if a.get("accepted").Int() != 2 || a.get("notUnderstood").Int() != 2 || !a.get("successful").Bool() ||
			a.get("faults.0.pointer").String() != "/1" || a.get("faults.1.pointer").String() != "/2/songServerId" ||
			a.get("faults.1.message").String() != `songServerId names another server, "song.other"` {
			t.Errorf("the answer: %s", a.raw)
		}
	}
	w.awaitConverged(wait)
	list := w.mustRequest(http.MethodGet, "/dead-letters?repository="+code, http.StatusOK).get("deadLetters").Array()
	if len(list) != 2 {
		t.Fatalf("dead letters: %s", list)
	}
	for _, l := range list {
		a := w.mustRequest(http.MethodPost, "/dead-letters/"+l.Get("id").String()+"/retry", http.StatusConflict)
		want := "the message still cannot be used: " + l.Get("hint").String()
		if a.get("detail").String() != want || a.get("hint").String() != "have a corrected message sent, or discard the dead letter" ||
			a.get("code").String() != "conflict" || l.Get("attempts").Int() != 2 {
			t.Errorf("retry of %s: %s", l.Raw, a.raw)
		}
	}
	if j := w.awaitJob(w.retryAll("")); j.Get("totals.retried").Int() != 0 || j.Get("totals.rejected").Int() != 2 || j.Get("state").String() != "failed" {
		t.Errorf("retry of all: %s", j.Raw)
	}
}

// TestNotifySignature: with a secret, only what is signed by it is taken, and nothing of the rest is kept. A signed removal that is
// sent again does not undo what was indexed since.
func TestNotifySignature(t *testing.T) {
	t.Parallel()
	const secret = "a secret of two"
	w := startWorld(t, settings{repository: `notifications: {webhook: {secret: "` + secret + `"}}`})
	ids := w.fill("S1", 2)
	body := "  " + array(songEvent(code, "S1", ids[0], "PUBLISHED")) + "\n"
	const missing, wrong = "the signature is missing", "the signature does not match"
	hints := map[string]string{
		missing: "send X-Signature-256: sha256= and the hexadecimal HMAC-SHA256 of the body under the repository's secret",
		wrong:   "sign the body's bytes as they are sent, with the secret that is configured for the repository",
	}
	for _, tc := range []struct{ name, body, signature, detail string }{
		{"missing", body, "", missing},
		{"of another secret", body, signing.Sign("a secret of three", []byte(body)), wrong},
		{"of another body", body, signing.Sign(secret, []byte(strings.TrimSpace(body))), wrong},
		{"without its prefix", body, strings.TrimPrefix(signing.Sign(secret, []byte(body)), "sha256="), wrong},
		{"cut", body, signing.Sign(secret, []byte(body))[:40], wrong},
		{"no hexadecimal", body, "sha256=" + strings.Repeat("zz", 32), wrong},
		{"of no event", `{}`, signing.Sign(secret, []byte(body)), wrong},
	} {
		headers := []string{"X-Signature-256", tc.signature}
		if tc.signature == "" {
			headers = nil
		}
		a := w.postBody(webhook, tc.body, http.StatusUnauthorized, headers...)
		if a.get("detail").String() != tc.detail || a.get("hint").String() != hints[tc.detail] || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %s", tc.name, a.raw)
		}
	}
	if n := w.song.RecordRequests(ids[0]); n != 0 {
		t.Errorf("the record was fetched %d times", n)
	}
	if list := w.mustRequest(http.MethodGet, "/dead-letters", http.StatusOK).get("deadLetters"); list.Raw != "[]" {
		t.Errorf("dead letters: %s", list.Raw)
	}
	accepted(t, w.postBody(webhook, body, http.StatusAccepted, "X-Signature-256", signing.Sign(secret, []byte(body))), 1)
	single := songEvent(code, "S1", ids[1], "PUBLISHED")
	accepted(t, w.postBody(webhook, single, http.StatusAccepted, "X-Signature-256", signing.Sign(secret, []byte(single))), 1)
	w.awaitConverged(wait)
	removal, again := removalRequest(code, "S1", ids[0]), songEvent(code, "S1", ids[0], "PUBLISHED")
	accepted(t, w.postBody(webhook, removal, http.StatusAccepted, "X-Signature-256", signing.Sign(secret, []byte(removal))), 1)
	w.awaitOutcomes(core.OutcomeRemoved, 1)
	accepted(t, w.postBody(webhook, again, http.StatusAccepted, "X-Signature-256", signing.Sign(secret, []byte(again))), 1)
	w.awaitOutcomes(core.OutcomeIndexed, 3)
	accepted(t, w.postBody(webhook, removal, http.StatusAccepted, "X-Signature-256", signing.Sign(secret, []byte(removal))), 1)
	w.awaitOutcomes(core.OutcomeStale, 1)
	w.wantConverged()
}

// TestNotifyUnpublished: an event that says unpublished removes nothing that is published, however late or often it comes;
// only removeAnalysis removes.
func TestNotifyUnpublished(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 4)
	w.run("", "", core.JobSucceeded)
	for range 3 {
		for _, state := range []string{"UNPUBLISHED", "SUPPRESSED"} {
			event := strings.Replace(songEvent(code, "S1", ids[0], state), "PUBLISH", strings.TrimSuffix(state, "ED"), 1)
			asked := w.song.RecordRequests(ids[0])
			w.postBody(webhook, event, http.StatusAccepted)
			w.eventually(wait, func() (bool, string) {
				return w.song.RecordRequests(ids[0]) > asked, "the event does not make anybody ask for the record"
			})
			w.wantConverged()
		}
	}
	w.postBody(webhook, array(songEvent(code, "S1", ids[1], "UNPUBLISHED"), songEvent(code, "S1", ids[1], "UNPUBLISHED")), http.StatusAccepted)
	w.awaitOutcomes(core.OutcomeIndexed, 4+6+1)
	w.wantConverged()
	if n := w.outcomes(core.OutcomeRemoved); n != 0 {
		t.Errorf("%d documents were removed", n)
	}

	// Of several words on one record the last one counts.
	w.postBody(webhook, array(removalRequest(code, "S1", ids[1]), songEvent(code, "S1", ids[1], "PUBLISHED")), http.StatusAccepted)
	w.awaitOutcomes(core.OutcomeIndexed, 4+6+1+1)
	w.postBody(webhook, array(songEvent(code, "S1", ids[2], "PUBLISHED"), removalRequest(code, "S1", ids[2])), http.StatusAccepted)
	w.postBody(webhook, removalRequest(code, "S1", ids[3]), http.StatusAccepted)
	w.postBody(webhook, removalRequest(code, "S2", ids[0]), http.StatusAccepted) // not of that study
	w.awaitOutcomes(core.OutcomeRemoved, 2)
	w.awaitOutcomes(core.OutcomeMismatch, 1)
	want := w.upstreamDocuments()
	delete(want, ids[2])
	delete(want, ids[3])
	if fault := difference(want, w.documents()); fault != "" {
		t.Error(fault)
	}
	w.postBody(webhook, songEvent(code, "S1", ids[3], "PUBLISHED"), http.StatusAccepted)
	w.trigger("S1", ids[2])
	w.awaitConverged(wait)
}

// TestNotifyMany: 300 events of one post, and 200 posts side by side, are all done, also when they are of one record.
func TestNotifyMany(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{concurrency: 16})
	w.fill("S1", 300)
	var events []string
	for _, a := range w.song.Analyses("S1") {
		events = append(events, songEvent(code, "S1", a.ID, "PUBLISHED"))
	}
	accepted(t, w.postBody(webhook, array(events...), http.StatusAccepted), 300)
	w.awaitConverged(wait)

	two := w.fill("S2", 200)
	var posts sync.WaitGroup
	for i, id := range two {
		posts.Go(func() {
			a, err := w.tryPostBody(webhook, songEvent(code, "S2", id, "PUBLISHED"))
			if err != nil || a.status != http.StatusAccepted || a.get("accepted").Int() != 1 {
				t.Errorf("post %d: %v, status %d, %s", i, err, a.status, a.raw)
			}
		})
	}
	posts.Wait()
	w.awaitConverged(wait)

	for i := range 50 {
		w.put("S2", two[0], fmt.Sprintf(`"experiment":{"number":%d}`, i))
		posts.Go(func() {
			if a, err := w.tryPostBody(webhook, songEvent(code, "S2", two[0], "PUBLISHED")); err != nil || a.status != http.StatusAccepted {
				t.Errorf("post %d of one record: %v, status %d, %s", i, err, a.status, a.raw)
			}
		})
	}
	posts.Wait()
	w.awaitConverged(wait)
	if letters := w.deadLettersByRecord(); len(letters) != 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// TestNotifyQueueFull: a full queue refuses a notification with a 503, and accepts it again later; no accepted one is lost.
func TestNotifyQueueFull(t *testing.T) {
	t.Parallel()
	const room = 20
	w := newWorld(t, settings{faulty: true, maxPending: room})
	ids := w.fill("S1", 3*room)
	w.engine.setDown(true)
	w.start()
	w.awaitPaused(true)
	var taken, refused []string
	for _, id := range ids[:2*room] { // one after the other: those that come at once share a message
		a, err := w.tryPostBody(webhook, songEvent(code, "S1", id, "PUBLISHED"))
		switch {
		case err == nil && a.status == http.StatusAccepted:
			taken = append(taken, id)
		case err == nil && a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "" &&
			a.get("code").String() == "overloaded" && a.get("detail").String() != "":
			refused = append(refused, id)
		default:
			t.Errorf("%v, status %d, %v: %s", err, a.status, a.header, a.raw)
		}
	}
	if len(taken) < room || len(refused) == 0 {
		t.Fatalf("%d were taken, %d refused, there is room for %d messages", len(taken), len(refused), room)
	}
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return a.get("components.queue").String() == "degraded" && strings.Contains(a.get("reasons").String(), fmt.Sprintf(
			"queue: it holds %d requests, as many as it may (queue.maxPending); new ones get 503 until some are processed; most, %[1]d, are of repository %s, "+
				"which is paused (%s): end the cause, or raise queue.maxPending", room, code, a.get("paused.0.reason").String())), string(a.raw)
	})
	for name, want := range map[string]float64{"tutti_queue_requests": room, "tutti_queue_max_requests": room} {
		if got := w.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	var rest []string
	for _, id := range append(ids[2*room:], refused...) {
		rest = append(rest, songEvent(code, "S1", id, "PUBLISHED"))
	}
	if a := w.postBody(webhook, array(rest...), http.StatusServiceUnavailable); a.header.Get("Retry-After") == "" {
		t.Errorf("an array: %v %s", a.header, a.raw)
	}
	w.stop()
	w.set.maxPending++
	w.start()
	w.postBody(webhook, songEvent(code, "S1", refused[0], "PUBLISHED"), http.StatusAccepted)
	taken = append(taken, refused[0])
	w.engine.setDown(false)
	w.awaitPaused(false)
	w.eventually(wait, func() (bool, string) {
		got := w.documents()
		for _, id := range taken {
			if _, ok := got[id]; !ok {
				return false, id + " was accepted and is missing"
			}
		}
		return true, ""
	})
	w.eventually(wait, func() (bool, string) { // as a client does that heeds Retry-After
		a, err := w.tryPostBody(webhook, array(rest...))
		return err == nil && a.status == http.StatusAccepted, fmt.Sprintf("%v: %s", err, a.raw)
	})
	w.awaitConverged(wait)
}

// TestQueueFullOfUnreachable: what /ready says of a full queue has why the repository's requests wait, and ends with that.
func TestQueueFullOfUnreachable(t *testing.T) {
	t.Parallel()
	const room = 10
	w := startWorld(t, settings{maxPending: room})
	ids := w.fill("S1", 2*room)
	w.song.Fail(testkit.Fault{Status: http.StatusServiceUnavailable})
	for _, id := range ids {
		w.tryPost(recordPath("S1", id))
	}
	full := func() string { return w.ready().get(`reasons.#(%"queue: it holds*")`).String() }
	w.eventually(wait, func() (bool, string) {
		said := full()
		return strings.Contains(said, fmt.Sprintf("; most, %d, are of repository %s, which did not answer the last call (", room, code)) &&
			strings.HasSuffix(said, "): make it answer, or raise queue.maxPending"), said
	})
	w.song.ClearFaults()
	w.eventually(wait, func() (bool, string) { said := full(); return said == "", said })
}

// TestNotifyUpstreamDown: events of an upstream that does not answer are done when it does.
func TestNotifyUpstreamDown(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	w.fill("S1", 20)
	w.song.Fail(testkit.Fault{Status: http.StatusServiceUnavailable})
	var events []string
	for _, a := range w.song.Analyses("S1") {
		events = append(events, songEvent(code, "S1", a.ID, "PUBLISHED"))
	}
	w.postBody(webhook, array(events...), http.StatusAccepted)
	w.awaitOutcomes(core.OutcomeRetry, 20)
	w.song.ClearFaults()
	w.awaitConverged(wait)
	if list := gjson.ParseBytes(w.mustRequest(http.MethodGet, "/dead-letters", http.StatusOK).raw).Get("deadLetters"); list.Raw != "[]" {
		t.Errorf("dead letters: %s", list.Raw)
	}
}
