package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/ingest"
	"tutti/ingest/signing"
	"tutti/internal/core"
	"tutti/internal/upstream/protocol"
)

func songEvent(id string) string { return fmt.Sprintf(`{"analysisId":%q,"studyId":"S"}`, id) }

func TestNotifyPublishes(t *testing.T) {
	for name, tt := range map[string]struct {
		repository, body string
		accepted         int
		want             []string
	}{
		"song":                {"song.ca", `{"analysisId":"A","studyId":"S","songServerId":"song.ca"}`, 1, []string{"index song.ca/S/A"}},
		"song without server": {"song.ca", songEvent("A"), 1, []string{"index song.ca/S/A"}},
		"local":               {"local", songEvent("A"), 1, []string{"index local/S/A"}},
		"lyric by id":         {"lyric", `{"systemId":"L","organization":"O","categoryId":3,"categoryAlias":"x"}`, 1, []string{"index lyric/O/L"}},
		"lyric by alias":      {"lyric", `{"systemId":"L","organization":"O","categoryId":7,"categoryAlias":"3"}`, 1, []string{"index lyric/O/L"}},
		"lyric of no category": {
			"lyric", `{"systemId":"L","organization":"O"}`, 1, []string{"index lyric/O/L"},
		},
		"lyric where none is configured": {
			"lyric.4", `{"systemId":"L","organization":"O","categoryId":9}`, 1, []string{"index lyric.4/O/L"},
		},
		"maestro removal": {
			"song.ca", `{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`, 1, []string{"remove song.ca/S/A"},
		},
		"maestro organization": {"song.ca", `{"repositoryCode":"song.ca","studyId":"S"}`, 1, []string{"run song.ca/S"}},
		"maestro repository":   {"song.ca", `{"repositoryCode":"song.ca"}`, 1, []string{"run song.ca"}},
		"empty array":          {"song.ca", ` [] `, 0, nil},
		"array": {
			"song.ca", `[` + songEvent("A") + `,` + songEvent("B") + `,{"repositoryCode":"song.ca"},{"repositoryCode":"song.ca"}]`, 4,
			[]string{"index song.ca/S/A", "index song.ca/S/B", "run song.ca"},
		},
		"the last of a record counts": {
			"song.ca", `[{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true},` + songEvent("A") + `,` +
				songEvent("B") + `,{"repositoryCode":"song.ca","studyId":"S","analysisId":"B","removeAnalysis":true}]`, 4,
			[]string{"index song.ca/S/A", "remove song.ca/S/B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			got, err := w.service.Notify(t.Context(), tt.repository, []byte(tt.body), "", "req")
			if err != nil || got.Accepted != tt.accepted || len(got.Errors) != 0 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if diff := cmp.Diff(tt.want, w.asked()); diff != "" {
				t.Error(diff)
			}
			for _, r := range w.requests() {
				if r.Cause != core.CauseWebhook || r.ID != "req" || r.Force {
					t.Errorf("request %+v", r)
				}
			}
			if n := len(w.letters.all()); n != 0 {
				t.Errorf("%d letters", n)
			}
		})
	}
}

func TestNotifyRefuses(t *testing.T) {
	many := "[" + strings.Repeat("{},", 10_000) + "{}]"
	for name, tt := range map[string]struct {
		repository, body string
		code             core.Code
		message          string
	}{
		"unknown repository": {"song.de", songEvent("A"), core.CodeNotFound, `repository "song.de" is not configured`},
		"nothing":            {"song.ca", "", core.CodeInvalid, "the body is empty"},
		"broken":             {"song.ca", songEvent("A") + ",", core.CodeInvalid, "the body is not valid JSON"},
		"text":               {"song.ca", `"A"`, core.CodeInvalid, "the body is neither a JSON object nor an array"},
		"an array of more":   {"song.ca", `[` + songEvent("A") + `,[` + songEvent("B") + `]]`, core.CodeInvalid, "/1 is not a JSON object"},
		"null in an array":   {"song.ca", `[null]`, core.CodeInvalid, "/0 is not a JSON object"},
		"too many":           {"song.ca", many, core.CodeInvalid, "/10000 is over the limit: a notification has at most 10000 events"},
		"deep":               {"song.ca", strings.Repeat("[", 5_000_000), core.CodeInvalid, "the body is nested deeper than 500 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			got, err := w.service.Notify(t.Context(), tt.repository, []byte(tt.body), "", "req")
			if core.CodeOf(err) != tt.code || core.MessageOf(err) != tt.message {
				t.Errorf("got %+v, %q %v", got, core.CodeOf(err), err)
			}
			if len(w.requests())+len(w.letters.all()) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

func TestNotifyChecksTheSignatureFirst(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.Sources = map[string]ingest.Source{"song.ca": {WebhookSecret: "s3cret"}} })
	for name, tt := range map[string]struct{ repository, body, signature, message string }{
		"right":         {"song.ca", songEvent("A"), signing.Sign("s3cret", []byte(songEvent("A"))), ""},
		"missing":       {"song.ca", songEvent("A"), "", "the signature is missing"},
		"wrong":         {"song.ca", songEvent("A"), signing.Sign("other", []byte(songEvent("A"))), "the signature does not match"},
		"before broken": {"song.ca", "{", "sha256=00", "the signature does not match"},
		"no secret":     {"song.jp", songEvent("A"), "sha256=00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.service.Notify(t.Context(), tt.repository, []byte(tt.body), tt.signature, "req")
			if tt.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, core.CodeUnauthenticated, tt.message)
		})
	}
	if diff := cmp.Diff([]string{"index song.ca/S/A", "index song.jp/S/A"}, w.asked()); diff != "" {
		t.Error(diff)
	}
}

// signaturesFake remembers keys in memory.
type signaturesFake struct {
	now  func() time.Time
	seen map[string]time.Time
	err  error
}

func (f *signaturesFake) FirstSeen(_ context.Context, key string) (time.Time, error) {
	return f.seen[key], f.err
}

func (f *signaturesFake) Remember(_ context.Context, key string) error {
	if f.seen[key].IsZero() {
		f.seen[key] = f.now()
	}
	return f.err
}

// TestNotifyRepeatedRemoval: a signed body that is sent again removes as of the first time, however its signature is
// written; another body, or one without a secret, is a notification of its own, and one that was refused was no first time. Only
// removals are remembered.
func TestNotifyRepeatedRemoval(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	signatures := &signaturesFake{now: clock, seen: map[string]time.Time{}}
	w := newWorld(t, func(c *ingest.Config) {
		c.Now, c.Signatures = clock, signatures
		c.Sources = map[string]ingest.Source{"song.ca": {WebhookSecret: "s3cret"}}
	})
	removal := func(repository, id string) string {
		return fmt.Sprintf(`{"repositoryCode":%q,"studyId":"S","analysisId":%q,"removeAnalysis":true}`, repository, id)
	}
	asOf := func(repository, body, signature string) core.Version {
		t.Helper()
		now = now.Add(time.Hour)
		if _, err := w.service.Notify(t.Context(), repository, []byte(body), signature, ""); err != nil {
			t.Fatal(err)
		}
		all := w.requests()
		return all[len(all)-1].AsOf
	}
	body := removal("song.ca", "A")
	signature := signing.Sign("s3cret", []byte(body))
	w.publish = func(core.Request) error { return core.NewError(core.CodeOverloaded, "the queue is full") }
	_, err := w.service.Notify(t.Context(), "song.ca", []byte(body), signature, "")
	wantError(t, err, core.CodeOverloaded, "the queue is full")
	w.publish = nil
	first := core.Version(noon.Add(time.Hour).UnixNano())
	if got := asOf("song.ca", body, signature); got != 0 {
		t.Errorf("the first is as of %d", got)
	}
	if got := asOf("song.ca", body, signature); got != first {
		t.Errorf("the second is as of %d, want %d", got, first)
	}
	if got := asOf("song.ca", body, "sha256="+strings.ToUpper(strings.TrimPrefix(signature, "sha256="))); got != first {
		t.Errorf("the third, in capitals, is as of %d, want %d", got, first)
	}
	if got := asOf("song.ca", body+" ", signing.Sign("s3cret", []byte(body+" "))); got != 0 {
		t.Errorf("another body is as of %d", got)
	}
	for range 2 {
		if got := asOf("song.jp", removal("song.jp", "A"), ""); got != 0 {
			t.Errorf("without a secret it is as of %d", got)
		}
	}
	event := songEvent("A")
	for range 2 {
		if got := asOf("song.ca", event, signing.Sign("s3cret", []byte(event))); got != 0 {
			t.Errorf("an event to index is as of %d", got)
		}
	}
	if n := len(signatures.seen); n != 2 {
		t.Errorf("%d signatures are remembered, want 2", n)
	}

	signatures.err = core.NewError(core.CodeUnavailable, "the queue does not answer")
	asked := len(w.requests())
	_, err = w.service.Notify(t.Context(), "song.ca", []byte(body), signature, "")
	wantError(t, err, core.CodeUnavailable, "the queue does not answer")
	if len(w.requests()) != asked {
		t.Error("something was published")
	}
}

func TestNotifyKeepsWhatItDoesNotUnderstand(t *testing.T) {
	w := newWorld(t, nil)
	body := `[` + songEvent("A") + `, {"analysisId":7,"studyId":"S"}, {}, {"systemId":"L","organization":"O"},` +
		`{"analysisId":"A","studyId":"S","songServerId":"song.jp"},{"repositoryCode":"song.jp"},` + songEvent("B") + `]`
	got, err := w.service.Notify(t.Context(), "song.ca", []byte(body), "", "req")
	if err != nil {
		t.Fatal(err)
	}
	letters := w.letters.all()
	if len(letters) != 5 {
		t.Fatalf("%d letters", len(letters))
	}
	id := make(map[string]string)
	for _, l := range letters {
		id[string(l.Document)] = l.ID
		if l.Repository != "song.ca" || l.Source != "webhook" || l.Reason != core.ReasonNotUnderstood || l.Hint == "" {
			t.Errorf("letter %+v", l)
		}
	}
	want := core.NotificationResult{Accepted: 2, Errors: []core.EventError{
		{Pointer: "/1/analysisId", Message: "analysisId must be a string", DeadLetterID: id[`{"analysisId":7,"studyId":"S"}`]},
		{Pointer: "/2", Message: "the event has none of the members repositoryCode, systemId and analysisId", DeadLetterID: id[`{}`]},
		{
			Pointer: "/3/systemId", Message: "systemId is not in the events of a repository of type song",
			DeadLetterID: id[`{"systemId":"L","organization":"O"}`],
		},
		{
			Pointer: "/4/songServerId", Message: `songServerId names another server, "song.jp"`,
			DeadLetterID: id[`{"analysisId":"A","studyId":"S","songServerId":"song.jp"}`],
		},
		{
			Pointer: "/5/repositoryCode", Message: `repositoryCode names another server, "song.jp"`,
			DeadLetterID: id[`{"repositoryCode":"song.jp"}`],
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"index song.ca/S/A", "index song.ca/S/B"}, w.asked()); diff != "" {
		t.Error(diff)
	}
	single, err := w.service.Notify(t.Context(), "song.ca", []byte(`{"analysisId":"A"}`), "", "req")
	if err != nil || len(single.Errors) != 1 || single.Errors[0].Pointer != "/studyId" || single.Accepted != 0 {
		t.Errorf("got %+v, %v", single, err)
	}
	if l, err := w.letters.Get(t.Context(), single.Errors[0].DeadLetterID); err != nil || l.RecordID != "A" {
		t.Errorf("letter %+v, %v", l, err)
	}
}

// TestNotifyTakesTheNeighboursOfOrganizationsThatCannotRun: one event at rejection does not refuse the whole body.
func TestNotifyTakesTheNeighboursOfOrganizationsThatCannotRun(t *testing.T) {
	w := newWorld(t, nil)
	got, err := w.service.Notify(t.Context(), "lyric", []byte(`[{"systemId":"A","organization":"..","entityName":"specimen"},`+
		`{"systemId":"B","organization":"O","entityName":"specimen"}]`), "", "")
	if err != nil || got.Accepted != 1 || len(got.Errors) != 1 || got.Errors[0].Pointer != "/0/organization" ||
		got.Errors[0].Message != "organization must not be a relative path segment" || got.Errors[0].DeadLetterID == "" {
		t.Errorf("got %+v, %v", got, err)
	}
	if d := cmp.Diff([]string{"index lyric/O/B"}, w.asked()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNotifyOfAnotherCategory(t *testing.T) {
	w := newWorld(t, nil)
	got, err := w.service.Notify(t.Context(), "lyric", []byte(`{"systemId":"L","organization":"O","categoryId":4,"categoryAlias":"x"}`), "", "")
	if err != nil || len(got.Errors) != 1 || got.Errors[0].Message != `categoryId names another server, "4 x"` ||
		got.Errors[0].Pointer != "/categoryId" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNotifyStopsKeepingGarbage(t *testing.T) {
	w := newWorld(t, nil)
	garbage := func(from, n int) []byte {
		var b strings.Builder
		b.WriteString("[")
		for i := range n {
			fmt.Fprintf(&b, `{"garbage":%d},`, from+i)
		}
		return []byte(b.String() + songEvent("A") + "]")
	}
	first, err := w.service.Notify(t.Context(), "song.ca", garbage(0, 990), "", "")
	if err != nil || len(first.Errors) != 990 || first.Errors[989].DeadLetterID == "" {
		t.Fatalf("%d faults, %v", len(first.Errors), err)
	}
	second, err := w.service.Notify(t.Context(), "song.ca", garbage(5000, 30), "", "")
	if err != nil || len(second.Errors) != 30 || second.Accepted != 1 {
		t.Fatalf("%d faults, %v", len(second.Errors), err)
	}
	for i, f := range second.Errors {
		if kept := f.DeadLetterID != ""; kept != (i < 10) {
			t.Errorf("rejection %d kept: %v", i, kept)
		}
	}
	if n := len(w.letters.all()); n != 1000 {
		t.Errorf("%d letters", n)
	}
	other, err := w.service.Notify(t.Context(), "song.jp", garbage(0, 1), "", "")
	if err != nil || other.Errors[0].DeadLetterID == "" {
		t.Errorf("another repository's: %+v, %v", other, err)
	}
}

func TestNotifyIsAllOrNothingForTheClient(t *testing.T) {
	full := core.NewError(core.CodeOverloaded, "the queue is full")
	body := []byte(`[` + songEvent("A") + `,` + songEvent("B") + `,{}]`)
	t.Run("a request is refused", func(t *testing.T) {
		w := newWorld(t, nil)
		w.publish = func(r core.Request) error {
			if r.RecordID == "A" {
				return full
			}
			return nil
		}
		_, err := w.service.Notify(t.Context(), "song.ca", body, "", "")
		wantError(t, err, core.CodeOverloaded, "publishing a record request: the queue is full")
	})
	t.Run("a run is refused", func(t *testing.T) {
		w := newWorld(t, nil)
		w.publish = func(core.Request) error { return full }
		_, err := w.service.Notify(t.Context(), "song.ca", []byte(`{"repositoryCode":"song.ca"}`), "", "")
		wantError(t, err, core.CodeOverloaded, "publishing a repository request: the queue is full")
	})
	t.Run("a letter is refused", func(t *testing.T) {
		w := newWorld(t, nil)
		w.letters.put = func(core.DeadLetter) error { return core.NewError(core.CodeUnavailable, "gone") }
		_, err := w.service.Notify(t.Context(), "song.ca", body, "", "")
		wantError(t, err, core.CodeUnavailable, "storing an event that could not be decoded: gone")
	})
	t.Run("one by one where there is no call for many", func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.Batches, c.DeadLetterIndex = nil, nil })
		got, err := w.service.Notify(t.Context(), "song.ca", body, "", "")
		if err != nil || got.Accepted != 2 || len(w.asked()) != 2 || got.Errors[0].DeadLetterID != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		w.publish = func(core.Request) error { return full }
		_, err = w.service.Notify(t.Context(), "song.ca", body, "", "")
		wantError(t, err, core.CodeOverloaded, "the queue is full")
	})
	t.Run("without letters", func(t *testing.T) {
		w := newWorld(t, func(c *ingest.Config) { c.DeadLetters = nil })
		got, err := w.service.Notify(t.Context(), "song.ca", body, "", "")
		if err != nil || got.Accepted != 2 || len(got.Errors) != 1 || got.Errors[0].DeadLetterID != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestNotifyIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(c *ingest.Config) { c.Metrics = ingest.NewMetrics(reg) })
	body := `[` + songEvent("A") + `,` + songEvent("A") + `,{},{"analysisId":"A","studyId":"S","songServerId":"x"}]`
	if _, err := w.service.Notify(t.Context(), "song.ca", []byte(body), "", ""); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP tutti_notifications_total Notification events received, by source and result.
# TYPE tutti_notifications_total counter
tutti_notifications_total{result="accepted",source="webhook"} 2
tutti_notifications_total{result="not_understood",source="webhook"} 1
tutti_notifications_total{result="other_server",source="webhook"} 1
# HELP tutti_requests_received_total Triggers that passed validation, by source and kind.
# TYPE tutti_requests_received_total counter
tutti_requests_received_total{kind="index",source="webhook"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestNewRejectsSourceWithoutRepository(t *testing.T) {
	q := &queueFake{}
	_, err := ingest.New(repositories(), q, q, q, ingest.Config{Sources: map[string]ingest.Source{"song.de": {}}})
	wantError(t, err, core.CodeInvalid, `a source is given for repository "song.de", which is not configured`)
}

func ExampleService_Notify() {
	q := &queueFake{}
	s, err := ingest.New(repositories(), q, q, q, ingest.Config{
		Formats: protocol.EventFormats(), Sources: map[string]ingest.Source{"song.ca": {WebhookSecret: "s3cret"}},
	})
	if err != nil {
		return
	}
	body := []byte(`[{"analysisId":"A1","studyId":"PACA-CA","state":"PUBLISHED"}, {"analysisId":"A2"}]`)
	told, err := s.Notify(context.Background(), "song.ca", body, signing.Sign("s3cret", body), "req-1")
	if err != nil {
		return
	}
	fmt.Println(told.Accepted, told.Errors[0].Pointer, told.Errors[0].Message)
	// Output: 1 /1/studyId studyId is missing
}

// TestNoActionOrStateRemoves: whatever an upstream says of a record's state, the record is asked for and never removed on
// its word.
func TestNoActionOrStateRemoves(t *testing.T) {
	song := func(action, state string) string {
		return fmt.Sprintf(`{"analysisId":"A","studyId":"S","action":%q,"state":%q,"songServerId":"song.ca","removeAnalysis":true}`,
			action, state)
	}
	for _, action := range []string{"CREATE", "PUBLISH", "UNPUBLISH", "SUPPRESS", "DELETE", "", "nonsense"} {
		for _, state := range []string{"PUBLISHED", "UNPUBLISHED", "SUPPRESSED", "", "nonsense"} {
			t.Run("song "+action+" "+state, func(t *testing.T) {
				wantIndexRequest(t, "song.ca", song(action, state))
			})
		}
	}
	for _, action := range []string{"insert", "update", "delete", ""} {
		for _, valid := range []string{"true", "false", "null"} {
			t.Run("lyric "+action+" "+valid, func(t *testing.T) {
				wantIndexRequest(t, "lyric", fmt.Sprintf(
					`{"systemId":"A","organization":"S","action":%q,"isValid":%s,"removeAnalysis":true}`, action, valid))
			})
		}
	}
}

// wantIndexRequest notifies a repository of one event and wants the record asked for, once.
func wantIndexRequest(t *testing.T, repository, body string) {
	t.Helper()
	w := newWorld(t, nil)
	got, err := w.service.Notify(t.Context(), repository, []byte(body), "", "r")
	if err != nil || got.Accepted != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := []core.Request{{
		ID: "r", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: repository, Organization: "S", RecordID: "A",
		Cause: core.CauseWebhook, ReceivedAt: noon.UTC(),
	}}
	if diff := cmp.Diff(want, w.requests()); diff != "" {
		t.Error(diff)
	}
}
