package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest"
	"tutti/internal/core"
)

// recordLetter is the letter of a rejected record.
func recordLetter(repository, id string) core.DeadLetter {
	return core.DeadLetter{
		Repository: repository, Organization: "S", RecordID: id, Reason: core.ReasonRejected, Attempts: 3,
		Document: []byte(`{"analysisId":"stored copy"}`),
		Request: &core.Request{
			ID: "old", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: repository, Organization: "S", RecordID: id,
			Cause: core.CauseKafka, Attempts: 3,
		},
	}
}

func messageLetter(source, repository, document string) core.DeadLetter {
	kept := core.NewDeadLetterDocument([]byte(document))
	return core.DeadLetter{
		Repository: repository, Reason: core.ReasonNotUnderstood, Source: source, Document: kept.Bytes, Size: kept.Size,
		SHA256: kept.SHA256, Truncated: kept.Truncated,
	}
}

func runLetter(scope core.Scope, organization, jobID string) core.DeadLetter {
	return core.DeadLetter{
		Repository: "song.ca", Organization: organization, Reason: core.ReasonCrashLoop,
		Request: &core.Request{
			Kind: core.KindIndex, Scope: scope, Repository: "song.ca", Organization: organization, JobID: jobID, Force: true,
		},
	}
}

func TestRetry(t *testing.T) {
	removal := recordLetter("song.ca", "A")
	removal.Request.Kind, removal.Request.AsOf = core.KindRemove, 17
	dated := recordLetter("song.ca", "A")
	dated.Request.AsOf = 17
	ofRemoval := messageLetter("kafka requests", "song.ca", `{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`)
	ofRemoval.FirstAt = written(0)
	ofEvent := messageLetter("kafka requests", "song.ca", songEvent("A"))
	ofEvent.FirstAt = written(0)
	bare := recordLetter("song.ca", "A")
	bare.Request = nil
	ofBatch := recordLetter("song.ca", "A")
	ofBatch.Request = &core.Request{
		Kind: core.KindIndex, Scope: core.ScopeRecords, Records: []core.RecordKey{{Organization: "S", ID: "A"}, {Organization: "S", ID: "B"}},
	}
	ofPage := recordLetter("song.ca", "A")
	ofPage.Request = &core.Request{Kind: core.KindIndex, Scope: core.ScopePage, Organization: "S", JobID: "j"}
	for name, tt := range map[string]struct {
		letter core.DeadLetter
		want   string
		stays  bool
	}{
		"record":                   {recordLetter("song.ca", "A"), "index song.ca/S/A", true},
		"removal":                  {removal, "remove song.ca/S/A", true},
		"record of a dated event":  {dated, "index song.ca/S/A", true},
		"message to remove":        {ofRemoval, "remove song.ca/S/A", false},
		"message to index":         {ofEvent, "index song.ca/S/A", false},
		"record without a request": {bare, "index song.ca/S/A", true},
		"record of a page":         {ofPage, "index song.ca/S/A", true},
		"record of several":        {ofBatch, "index song.ca/S/A", true},
		"page":                     {runLetter(core.ScopePage, "S", "j"), "run song.ca/S", false},
		"organization":             {runLetter(core.ScopeOrganization, "S", "j"), "run song.ca/S", false},
		"repository":               {runLetter(core.ScopeRepository, "", "j"), "run song.ca", false},
		"webhook":                  {messageLetter("webhook", "song.ca", songEvent("A")), "index song.ca/S/A", false},
		"kafka":                    {messageLetter("kafka song-analysis", "song.ca", songEvent("A")), "index song.ca/S/A", false},
		"kafka of nobody known":    {messageLetter("kafka song-analysis", "", songOf("song.jp", "A")), "index song.jp/S/A", false},
		"another server since configured": {
			messageLetter("kafka song-analysis", "song.jp", `{"repositoryCode":"song.jp"}`), "run song.jp", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			id := w.letters.add(t, tt.letter)
			got, err := w.service.Retry(t.Context(), id, "req")
			if err != nil || got.ID != id {
				t.Fatalf("got %+v, %v", got, err)
			}
			if diff := cmp.Diff([]string{tt.want}, w.asked()); diff != "" {
				t.Error(diff)
			}
			r := w.requests()[0]
			if r.Cause != core.CauseREST || r.Attempts != 0 || r.ID != "req" || r.Force || !r.NotBefore.IsZero() {
				t.Errorf("request %+v", r)
			}
			wantAsOf := map[string]core.Version{"removal": 17, "message to remove": core.Version(written(0).UnixNano())}[name]
			if r.AsOf != wantAsOf { // what is indexed is as of now
				t.Errorf("as of %d, want %d", r.AsOf, wantAsOf)
			}
			if stays := len(w.letters.all()) == 1; stays != tt.stays {
				t.Errorf("the letter stays: %v, want %v", stays, tt.stays)
			}
		})
	}
}

func TestRetryRefuses(t *testing.T) {
	long := recordLetter("song.ca", strings.Repeat("x", 600))
	nothing := core.DeadLetter{Repository: "song.ca", Reason: core.ReasonInvalidID, Document: []byte("{}")}
	for name, tt := range map[string]struct {
		letter  core.DeadLetter
		message string
	}{
		"record of a repository that is gone":  {recordLetter("song.de", "A"), `repository "song.de" is not configured`},
		"message of a repository that is gone": {messageLetter("webhook", "song.de", songEvent("A")), `repository "song.de" is not configured`},
		"run of a repository that is gone": {
			core.DeadLetter{Repository: "song.de", Request: &core.Request{Scope: core.ScopeRepository}},
			`repository "song.de" is not configured`,
		},
		"long id": {long, "the record cannot be requested: id has 600 bytes, the limit is 512"},
		"a record without an id": {
			core.DeadLetter{
				Repository: "song.ca", Organization: "S", RecordID: "without-id-1", Reason: core.ReasonInvalidID,
				Request: &core.Request{Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "song.ca", Organization: "S", RecordID: "without-id-1"},
			},
			"the record cannot be requested by its id",
		},
		"records, of which none is named": {
			core.DeadLetter{Repository: "song.ca", Request: &core.Request{Scope: core.ScopeRecords}},
			"the dead letter names neither a record nor a run",
		},
		"no record":    {nothing, "the dead letter names neither a record nor a run"},
		"bad run":      {runLetter(core.ScopeOrganization, "..", "j"), "the organization cannot be run: organization must not be a relative path segment"},
		"still broken": {messageLetter("webhook", "song.ca", "{"), "the message still cannot be used: the event is not valid JSON"},
		"still another's": {
			messageLetter("webhook", "song.ca", songOf("song.jp", "A")),
			`the message still cannot be used: songServerId names another server, "song.jp"`,
		},
		"truncated": {
			messageLetter("kafka t", "song.ca", `{"analysisId":"A","studyId":"S","analysis":"`+strings.Repeat("x", 300<<10)+`"}`),
			"only a part of the message is stored",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			id := w.letters.add(t, tt.letter)
			_, err := w.service.Retry(t.Context(), id, "req")
			if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != tt.message || core.HintOf(err) == "" {
				t.Errorf("got %q %v with hint %q", core.CodeOf(err), err, core.HintOf(err))
			}
			if len(w.requests()) != 0 || len(w.letters.all()) != 1 {
				t.Errorf("asked %v, letters %+v", w.asked(), w.letters.all())
			}
		})
	}
	t.Run("no such letter", func(t *testing.T) {
		_, err := newWorld(t, nil).service.Retry(t.Context(), "x", "req")
		wantError(t, err, core.CodeNotFound, "no such dead letter")
	})
	t.Run("no letters", func(t *testing.T) {
		s := newWorld(t, func(c *ingest.Config) { c.DeadLetters = nil }).service
		_, err := s.Retry(t.Context(), "x", "req")
		wantError(t, err, core.CodeUnsupported, "dead letters are not stored here")
		_, err = s.RetryAll(t.Context(), core.DeadLetterFilter{}, "req")
		wantError(t, err, core.CodeUnsupported, "dead letters are not stored here")
	})
}

func TestRetryKeepsDeadLetterWhenPublishFails(t *testing.T) {
	w := newWorld(t, nil)
	id := w.letters.add(t, messageLetter("webhook", "song.ca", songEvent("A")))
	w.publish = func(core.Request) error { return core.NewError(core.CodeOverloaded, "the queue is full") }
	_, err := w.service.Retry(t.Context(), id, "req")
	wantError(t, err, core.CodeOverloaded, "the queue is full")
	if len(w.letters.all()) != 1 {
		t.Error("the letter is gone")
	}
	w.publish = nil
	w.letters.delete = func(string) error { return errors.New("gone") }
	if _, err := w.service.Retry(t.Context(), id, "req"); err != nil {
		t.Errorf("what is stored is retried, whatever becomes of the letter: %v", err)
	}
}

// fillLetters puts n letters of records, and some of each other kind, of two repositories.
func fillLetters(t *testing.T, w *world, n int) {
	t.Helper()
	for i := range n {
		w.letters.add(t, recordLetter("song.ca", fmt.Sprint("R", i)))
	}
	w.letters.add(t, recordLetter("song.jp", "J"))
	w.letters.add(t, recordLetter("song.ca", strings.Repeat("x", 600)))
	w.letters.add(t, runLetter(core.ScopeOrganization, "S", "j"))
	w.letters.add(t, messageLetter("webhook", "song.ca", songEvent("M")))
	w.letters.add(t, messageLetter("webhook", "song.ca", "{"))
}

// pageOf returns the letters of a repository and a reason as the queue lists them, without documents.
func pageOf(w *world, repository, reason string) []core.DeadLetter {
	var page []core.DeadLetter
	for _, l := range w.letters.all() {
		if (repository == "" || l.Repository == repository) && (reason == "" || l.Reason == reason) {
			l.Document = nil
			page = append(page, l)
		}
	}
	return page
}

func TestRetryPage(t *testing.T) {
	for name, tt := range map[string]struct {
		repository, reason     string
		retried, refused, left int
		want                   []string
	}{
		"all":             {"", "", 1203, 3, 1204, []string{"index song.ca/S/M", "index song.jp/S/J", "run song.ca/S"}},
		"of a repository": {"song.jp", "", 1, 0, 1206, []string{"index song.jp/S/J"}},
		"of a reason":     {"song.ca", core.ReasonNotUnderstood, 1, 1, 1205, []string{"index song.ca/S/M"}},
		"of none":         {"song.ca", "nonsense", 0, 0, 1206, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			fillLetters(t, w, 1200)
			w.letters.add(t, core.DeadLetter{Reason: core.ReasonCrashLoop, Request: &core.Request{Kind: core.KindIndex, Scope: core.ScopeRetry, JobID: "retry"}})
			retried, refused, err := w.service.RetryPage(t.Context(), pageOf(w, tt.repository, tt.reason), "", "req")
			if err != nil || retried != tt.retried || refused != tt.refused {
				t.Errorf("retried %d, refused %d, %v", retried, refused, err)
			}
			if left := len(w.letters.all()); left != tt.left {
				t.Errorf("%d letters are left, want %d", left, tt.left)
			}
			var rest []string
			for _, a := range w.asked() {
				if !strings.HasPrefix(a, "index song.ca/S/R") {
					rest = append(rest, a)
				}
			}
			if diff := cmp.Diff(tt.want, rest); diff != "" {
				t.Error(diff)
			}
			if n := len(w.requests()); n != tt.retried {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestRetryPageElsewhere: for dead letters of a repository that only another process has, a retry of those with their reason and of the
// organization of the job is requested, once; those of a repository that no process has are refused.
func TestRetryPageElsewhere(t *testing.T) {
	w := newWorld(t, func(cfg *ingest.Config) {
		cfg.Served = func(_ context.Context, repository string) (bool, error) { return repository != "song.gone", nil }
	})
	w.letters.add(t, recordLetter("song.ca", "A"))
	for i := range 3 {
		w.letters.add(t, recordLetter("song.de", fmt.Sprint(i)))
	}
	w.letters.add(t, messageLetter("webhook", "song.de", songEvent("M")))
	w.letters.add(t, recordLetter("song.gone", "G"))
	retried, refused, err := w.service.RetryPage(t.Context(), pageOf(w, "", ""), "S", "req")
	if err != nil || retried != 5 || refused != 1 {
		t.Errorf("retried %d, refused %d, %v", retried, refused, err)
	}
	var got []string
	for _, r := range w.requests() {
		got = append(got, fmt.Sprint(r.Scope, " ", r.Repository, " ", r.Organization, " ", r.Reason))
	}
	slices.Sort(got)
	letters := pageOf(w, "song.de", "")
	want := []string{"record song.ca S ", "retry song.de S " + letters[0].Reason, "retry song.de S " + core.ReasonNotUnderstood}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for repository, want := range map[string]bool{"song.ca": false, "song.de": true, "song.gone": false, "": false} {
		if elsewhere, err := w.service.Elsewhere(t.Context(), repository); elsewhere != want || err != nil {
			t.Errorf("%q elsewhere: %t, %v", repository, elsewhere, err)
		}
	}
}

// TestRetryPageStopsWithTheQueue: a queue that takes no more Requests is an error, after which the page is retried again.
func TestRetryPageStopsWithTheQueue(t *testing.T) {
	w := newWorld(t, nil)
	fillLetters(t, w, 600)
	w.publish = func(r core.Request) error {
		if r.Scope == core.ScopeOrganization {
			return core.NewError(core.CodeOverloaded, "the queue is full")
		}
		return nil
	}
	_, _, err := w.service.RetryPage(t.Context(), pageOf(w, "", ""), "", "req")
	wantError(t, err, core.CodeOverloaded, "the queue is full")
	w.publish = nil
	if _, _, err = w.service.RetryPage(t.Context(), pageOf(w, "", ""), "", "req"); err != nil {
		t.Error(err)
	}
	if left := len(w.letters.all()); left != 603 {
		t.Errorf("%d letters are left", left)
	}
}

// TestRetryAll: a retry of all is one Request and its job, which the same filter joins until it ends; a client may have left.
func TestRetryAll(t *testing.T) {
	w := newWorld(t, nil)
	left, leave := context.WithCancel(t.Context())
	leave()
	retry := func(f core.DeadLetterFilter) core.Job {
		t.Helper()
		job, err := w.service.RetryAll(left, f, "req")
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	rejected := core.DeadLetterFilter{Repository: "song.ca", Reason: core.ReasonRejected}
	first := retry(rejected)
	want := core.Request{
		ID: "req", Kind: core.KindIndex, Scope: core.ScopeRetry, Repository: "song.ca", Reason: core.ReasonRejected, JobID: first.ID,
		Cause: core.CauseREST, ReceivedAt: nowAtNoon().UTC(),
	}
	if diff := cmp.Diff([]core.Request{want}, w.requests()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(w.All[first.ID], core.NewJob(want, "")); diff != "" {
		t.Error(diff)
	}
	for _, state := range []core.JobState{core.JobQueued, core.JobRunning} {
		w.setState(first.ID, state)
		if again := retry(rejected); again.ID != first.ID {
			t.Errorf("while the job is %s, the same filter has job %s", state, again.ID)
		}
	}
	seen := map[string]bool{first.ID: true}
	for _, filter := range []core.DeadLetterFilter{
		{Repository: "song.ca"},
		{Reason: core.ReasonRejected},
		{},
		{Repository: "song.ca", Reason: core.ReasonTooLarge},
		{Repository: "song.jp", Reason: core.ReasonRejected},
		{Repository: "song.ca", Organization: core.ReasonRejected},
		{Repository: "song.ca", Organization: "S1", Reason: core.ReasonRejected},
		{Repository: "song.ca", Organization: "S1"},
	} {
		other := retry(filter)
		if seen[other.ID] || (core.DeadLetterFilter{Repository: other.Repository, Organization: other.Organization, Reason: other.Reason}) != filter {
			t.Errorf("filter %+v has job %+v", filter, other)
		}
		seen[other.ID] = true
	}
	w.setState(first.ID, core.JobSucceeded)
	if again := retry(rejected); again.ID == first.ID {
		t.Error("a job that has ended was returned")
	}
	if n := len(w.requests()); n != 10 {
		t.Errorf("%d requests", n)
	}
	_, err := w.service.RetryAll(t.Context(), core.DeadLetterFilter{Repository: ".."}, "req")
	wantError(t, err, core.CodeInvalid, "repository must not be a relative path segment")
	w.publish = func(core.Request) error { return core.NewError(core.CodeOverloaded, "the queue is full") }
	_, err = w.service.RetryAll(t.Context(), core.DeadLetterFilter{Reason: core.ReasonConflict}, "req")
	wantError(t, err, core.CodeOverloaded, "the queue is full")
}
