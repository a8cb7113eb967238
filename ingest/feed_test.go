package ingest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace/noop"

	"tutti/ingest"
	"tutti/internal/base/span"
	"tutti/internal/core"
)

func newFeed(t testing.TB, w *world, cfg ingest.FeedConfig) *ingest.Feed {
	t.Helper()
	if cfg.Topic == "" {
		cfg.Topic = "song-analysis"
	}
	f, err := w.service.NewFeed(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func messagesOf(texts ...string) []core.TopicMessage {
	all := make([]core.TopicMessage, len(texts))
	for i, s := range texts {
		all[i] = core.TopicMessage{Partition: 3, Offset: int64(100 + i), At: written(i)}
		if s != "tombstone" {
			all[i].Value = []byte(s)
		}
	}
	return all
}

// written is before noon, the time of the tests' clock.
func written(i int) time.Time { return noon.Add(time.Duration(i-100) * time.Minute) }

func songOf(server, id string) string {
	return fmt.Sprintf(`{"analysisId":%q,"studyId":"S","songServerId":%q}`, id, server)
}

func lyricOf(category, id string) string {
	return fmt.Sprintf(`{"systemId":%q,"organization":"O","categoryId":%s}`, id, category)
}

func TestFeedDispatches(t *testing.T) {
	for name, tt := range map[string]struct {
		feed   ingest.FeedConfig
		values []string
		want   []string
	}{
		"one repository": {
			ingest.FeedConfig{Repositories: []string{"song.ca"}},
			[]string{songOf("song.ca", "A"), songEvent("B"), "tombstone", songOf("song.ca", "A")},
			[]string{"index song.ca/S/A", "index song.ca/S/B"},
		},
		"by server": {
			ingest.FeedConfig{Repositories: []string{"song.ca", "song.jp"}},
			[]string{songOf("song.ca", "A"), songOf("song.jp", "A"), songOf("song.jp", "B")},
			[]string{"index song.ca/S/A", "index song.jp/S/A", "index song.jp/S/B"},
		},
		"of each when it does not say": {
			ingest.FeedConfig{Repositories: []string{"song.ca", "song.jp", "lyric"}},
			[]string{songEvent("A")},
			[]string{"index song.ca/S/A", "index song.jp/S/A"},
		},
		"by category": {
			ingest.FeedConfig{Repositories: []string{"song.ca", "lyric"}},
			[]string{lyricOf("3", "L"), lyricOf(`"3"`, "M"), songOf("song.ca", "A")},
			[]string{"index lyric/O/L", "index lyric/O/M", "index song.ca/S/A"},
		},
		"requests": {
			ingest.FeedConfig{Requests: true},
			[]string{
				`{"repositoryCode":"song.jp"}`, `{"repositoryCode":"lyric","studyId":"O"}`,
				`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`, `{"repositoryCode":"song.jp"}`,
			},
			[]string{"remove song.ca/S/A", "run lyric/O", "run song.jp"},
		},
		"requests beside events": {
			ingest.FeedConfig{Requests: true, Repositories: []string{"song.ca"}},
			[]string{`{"repositoryCode":"song.jp"}`, songOf("song.ca", "A")},
			[]string{"index song.ca/S/A", "run song.jp"},
		},
		"the last of a record counts": {
			ingest.FeedConfig{Requests: true, Repositories: []string{"song.ca"}},
			[]string{
				songOf("song.ca", "A"), `{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`,
				`{"repositoryCode":"song.ca","studyId":"S","analysisId":"B","removeAnalysis":true}`, songOf("song.ca", "B"),
			},
			[]string{"index song.ca/S/B", "remove song.ca/S/A"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := newFeed(t, w, tt.feed).Handle(t.Context(), messagesOf(tt.values...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, w.asked()); diff != "" {
				t.Error(diff)
			}
			for _, r := range w.requests() {
				if r.Cause != core.CauseKafka || r.ID == "" {
					t.Errorf("request %+v", r)
				}
			}
			if letters := w.letters.all(); len(letters) != 0 {
				t.Errorf("letters %+v", letters)
			}
		})
	}
}

// TestFeedContinuesTraces: the Request of a record is part of the trace of its message, if traces are on.
func TestFeedContinuesTraces(t *testing.T) {
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, tt := range map[string]struct {
		tracer *span.Tracer
		want   []string
	}{
		"on":  {span.NewTracer(noop.NewTracerProvider()), []string{traceparent, "", ""}},
		"off": {nil, []string{"", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *ingest.Config) { c.Tracer = tt.tracer })
			messages := messagesOf(songEvent("A"), songEvent("B"), songEvent("C"))
			messages[0].Traceparent, messages[1].Traceparent = traceparent, "not one"
			if err := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}}).Handle(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
			got := make([]string, 3)
			for _, r := range w.requests() {
				got[r.RecordID[0]-'A'] = r.Traceparent
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFeedKeepsPoison(t *testing.T) {
	w := newWorld(t, nil)
	big := `{"analysisId":"A","broken":"` + strings.Repeat("x", 300<<10)
	batch := messagesOf(songOf("song.ca", "A"), big, "", "[]", `{"analysisId":"`+strings.Repeat("y", 600)+`","studyId":"S"}`, songEvent("B"))
	if err := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}}).Handle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"index song.ca/S/A", "index song.ca/S/B"}, w.asked()); diff != "" {
		t.Error(diff)
	}
	hints := map[string]string{
		"partition 3, offset 101": "the event is not valid JSON",
		"partition 3, offset 102": "the event is empty",
		"partition 3, offset 103": "the event is not a JSON object",
		"partition 3, offset 104": "analysisId has 600 bytes, the limit is 512",
	}
	for _, l := range w.letters.all() {
		if hints[l.Position] != l.Hint || l.Source != "kafka song-analysis" || l.Repository != "song.ca" ||
			l.Reason != core.ReasonNotUnderstood {
			t.Errorf("letter %+v", l)
		}
		if whole := l.Position != "partition 3, offset 101"; l.Truncated == whole || len(l.Document) > core.MaxDeadLetterBytes {
			t.Errorf("%s is truncated: %v", l.Position, l.Truncated)
		}
		delete(hints, l.Position)
	}
	if len(hints) != 0 {
		t.Errorf("no letters for %v", hints)
	}
}

func TestFeedOfRequestsTellsUnknownRepositories(t *testing.T) {
	w := newWorld(t, nil)
	f := newFeed(t, w, ingest.FeedConfig{Topic: "maestro_index_requests", Requests: true})
	if err := f.Handle(t.Context(), messagesOf(`{"repositoryCode":"song.de","studyId":"S"}`, songEvent("A"))); err != nil {
		t.Fatal(err)
	}
	letters := w.letters.all()
	if len(letters) != 2 || len(w.requests()) != 0 {
		t.Fatalf("letters %+v, requests %v", letters, w.asked())
	}
	for _, l := range letters {
		want := core.DeadLetter{
			ID: l.ID, Reason: core.ReasonNotUnderstood, Hint: "repositoryCode is missing: this topic accepts only requests",
			Organization: "S", RecordID: "A", Position: "partition 3, offset 101",
		}
		if l.Repository != "" {
			want = core.DeadLetter{
				ID: l.ID, Reason: core.ReasonUnknownRepository, Hint: `repositoryCode "song.de" is not configured`,
				Repository: "song.de", Organization: "S", Position: "partition 3, offset 100",
			}
		}
		want.Source, want.Attempts = "kafka maestro_index_requests", 1
		want.Document, want.Size, want.SHA256 = l.Document, l.Size, l.SHA256
		if diff := cmp.Diff(want, l); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFeedTellsOtherServersOnce(t *testing.T) {
	now := noon
	w := newWorld(t, func(c *ingest.Config) { c.Now = func() time.Time { return now } })
	f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca", "lyric"}})
	others := messagesOf(songOf("song.de", "A"), songOf("song.de", "B"), songOf("song.jp", "A"), lyricOf("9", "L"), songOf("song.ca", "A"))
	handle := func(batch []core.TopicMessage, puts int) {
		t.Helper()
		if err := f.Handle(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if w.letters.puts != puts {
			t.Errorf("%d letters were put, want %d", w.letters.puts, puts)
		}
	}
	handle(others, 3)
	now = now.Add(59 * time.Second)
	handle(others, 3)
	now = now.Add(2 * time.Second)
	handle(others, 6)
	letters := w.letters.all()
	if len(letters) != 3 {
		t.Fatalf("letters %+v", letters)
	}
	byDocument := map[string]core.DeadLetter{}
	for _, l := range letters {
		if l.Reason != core.ReasonUnknownRepository || l.Source != "kafka song-analysis" {
			t.Errorf("letter %+v", l)
		}
		byDocument[string(l.Document)] = l
	}
	if l := byDocument[`{"repositoryCode":"song.de"}`]; l.Repository != "song.de" ||
		!strings.HasPrefix(l.Hint, `events of server "song.de" arrive on this topic, but no repository that reads it has that code: `) {
		t.Errorf("letter %+v", l)
	}
	if l := byDocument[`{"categoryId":"9"}`]; l.Repository != "" || !strings.HasPrefix(l.Hint, `events of category "9" arrive`) {
		t.Errorf("letter %+v", l)
	}
	var flood []string
	for i := range 500 {
		flood = append(flood, songOf(fmt.Sprintf("server-%d", i), "A"))
	}
	handle(messagesOf(flood...), 6+97)
	now = now.Add(time.Hour)
	handle(messagesOf(flood...), 6+97+97)
}

func TestFeedSucceedsOnlyWhenAllIsSafe(t *testing.T) {
	full := core.NewError(core.CodeOverloaded, "the queue is full")
	for name, tt := range map[string]struct {
		batch   []core.TopicMessage
		breaks  func(w *world)
		message string
	}{
		"a request": {
			messagesOf(songEvent("A"), songEvent("B")),
			func(w *world) {
				w.publish = func(r core.Request) error {
					if r.RecordID == "B" {
						return full
					}
					return nil
				}
			}, "publishing a record request: the queue is full",
		},
		"a run": {
			messagesOf(`{"repositoryCode":"song.ca"}`), func(w *world) { w.publish = func(core.Request) error { return full } },
			"publishing a repository request: the queue is full",
		},
		"a letter": {
			messagesOf("{"), func(w *world) { w.letters.put = func(core.DeadLetter) error { return full } },
			"storing an event that could not be decoded: the queue is full",
		},
		"another server's letter": {
			messagesOf(songOf("song.de", "A")), func(w *world) { w.letters.put = func(core.DeadLetter) error { return full } },
			"storing an event that could not be decoded: the queue is full",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			w := newWorld(t, func(c *ingest.Config) { c.Metrics = ingest.NewMetrics(reg) })
			f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}})
			tt.breaks(w)
			wantError(t, f.Handle(t.Context(), tt.batch), core.CodeOverloaded, tt.message)
			if n, err := testutil.GatherAndCount(reg, "tutti_notifications_total"); err != nil || n != 0 {
				t.Errorf("a refused batch is counted: %d, %v", n, err)
			}
			w.publish, w.letters.put = nil, nil
			if err := f.Handle(t.Context(), tt.batch); err != nil {
				t.Errorf("again: %v", err)
			}
			if len(w.requests())+len(w.letters.all()) == 0 {
				t.Error("nothing is stored")
			}
		})
	}
}

func TestFeedIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(c *ingest.Config) { c.Metrics = ingest.NewMetrics(reg) })
	f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}})
	batch := messagesOf(songEvent("A"), "tombstone", "{", songOf("song.de", "A"), songOf("song.de", "B"), songEvent("B"), "tombstone", "tombstone")
	if err := f.Handle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP tutti_notifications_total Notification events received, by source and result.
# TYPE tutti_notifications_total counter
tutti_notifications_total{result="accepted",source="kafka"} 2
tutti_notifications_total{result="not_understood",source="kafka"} 1
tutti_notifications_total{result="other_server",source="kafka"} 2
tutti_notifications_total{result="skipped",source="kafka"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "tutti_notifications_total"); err != nil {
		t.Error(err)
	}
}

func TestNewFeedRefuses(t *testing.T) {
	w := newWorld(t, nil)
	for name, tt := range map[string]struct {
		cfg     ingest.FeedConfig
		code    core.Code
		message string
	}{
		"no topic":           {ingest.FeedConfig{Requests: true}, core.CodeInvalid, "a feed needs a topic"},
		"nothing on it":      {ingest.FeedConfig{Topic: "t"}, core.CodeInvalid, "repositories or requests"},
		"unknown repository": {ingest.FeedConfig{Topic: "t", Repositories: []string{"x"}}, core.CodeNotFound, `repository "x" is not configured`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.service.NewFeed(tt.cfg)
			wantError(t, err, tt.code, tt.message)
		})
	}
	_, err := newWorld(t, func(c *ingest.Config) { c.DeadLetters = nil }).service.NewFeed(ingest.FeedConfig{Topic: "t", Requests: true})
	wantError(t, err, core.CodeUnsupported, "dead letters are not stored here")
}

// TestFeedOfRelatedEntities: a change of a record of any entity requests that record; its upstream says which one contains it.
func TestFeedOfRelatedEntities(t *testing.T) {
	w := newWorld(t, nil)
	f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"lyric"}})
	event := func(entity, id string) string {
		return fmt.Sprintf(`{"systemId":%q,"organization":"O","entityName":%q}`, id, entity)
	}
	if err := f.Handle(t.Context(), messagesOf(event("donor", "D"), event("specimen", "S"), event("specimen", "T"))); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"index lyric/O/D", "index lyric/O/S", "index lyric/O/T"}, w.asked()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFeedKeepsEventsOfOrganizationsThatCannotRun: an organization that no run can name makes its event a dead letter;
// the events beside it are published and the batch succeeds, so that its offsets are committed.
func TestFeedKeepsEventsOfOrganizationsThatCannotRun(t *testing.T) {
	w := newWorld(t, nil)
	f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"lyric"}})
	batch := []string{`{"systemId":"A","organization":"O","entityName":"donor"}`}
	for _, organization := range unrunnable {
		batch = append(batch, fmt.Sprintf(`{"systemId":"B","organization":%s,"entityName":"specimen"}`, organization))
	}
	if err := f.Handle(t.Context(), messagesOf(batch...)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"index lyric/O/A"}, w.asked()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	letters := w.letters.all()
	if len(letters) != len(unrunnable) {
		t.Fatalf("letters %+v", letters)
	}
	for _, l := range letters {
		if l.Reason != core.ReasonNotUnderstood || !strings.HasPrefix(l.Hint, "organization ") || l.Repository != "lyric" {
			t.Errorf("letter %+v", l)
		}
		if _, err := w.service.Retry(t.Context(), l.ID, ""); core.CodeOf(err) != core.CodeConflict {
			t.Errorf("retry of %s: %v", l.Document, err)
		}
	}
}

// unrunnable holds organizations, as JSON, that no run can name.
var unrunnable = []string{`".."`, `"."`, `"a\u0000b"`, `"a\nb"`, `"\u007f"`}

// TestFeedAsOfTheMessage: a removal is as of the time at which its message was written, never of one to come, so that a topic
// that is read again removes nothing that was indexed since; and so is every event of a record on a topic that carries requests.
// What a repository's own topic asks to index is as of now.
func TestFeedAsOfTheMessage(t *testing.T) {
	for name, requests := range map[string]bool{"requests": true, "notifications": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}, Requests: requests})
			times := []time.Time{written(0), noon.Add(time.Hour), time.UnixMilli(-1), {}, written(4), noon.Add(time.Hour), {}}
			batch := make([]string, len(times), len(times)+1)
			for i := range times {
				batch[i] = fmt.Sprintf(`{"repositoryCode":"song.ca","studyId":"S","analysisId":"R%d","removeAnalysis":%v}`, i, i < 4)
			}
			batch, times = append(batch, songEvent("song")), append(times, written(7))
			messages := messagesOf(batch...)
			for i := range messages {
				messages[i].At = times[i]
			}
			if err := f.Handle(t.Context(), messages); err != nil {
				t.Fatal(err)
			}
			got := map[string]core.Version{}
			for _, r := range w.requests() {
				got[r.RecordID] = r.AsOf
			}
			version := func(i int) core.Version { return core.Version(written(i).Add(time.Millisecond - 1).UnixNano()) }
			now := core.Version(noon.UnixNano())
			want := map[string]core.Version{"R0": version(0), "R1": now, "R2": 0, "R3": 0, "R4": 0, "R5": 0, "R6": 0, "song": 0}
			if requests {
				want["R4"], want["R5"], want["song"] = version(4), now, version(7)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestFeedBoundsPoison: a topic that carries nothing that is understood does not fill the disk.
func TestFeedBoundsPoison(t *testing.T) {
	w := newWorld(t, nil)
	f := newFeed(t, w, ingest.FeedConfig{Repositories: []string{"song.ca"}})
	n := 0
	for range 3 {
		batch := make([]string, 4000)
		for i := range batch {
			batch[i] = fmt.Sprintf(`{"other":%d}`, n)
			n++
		}
		if err := f.Handle(t.Context(), messagesOf(batch...)); err != nil {
			t.Fatal(err)
		}
	}
	letters := w.letters.all()
	if len(letters) != 10_001 {
		t.Fatalf("%d letters, want 10,000 and one for those beyond", len(letters))
	}
	at := slices.IndexFunc(letters, func(l core.DeadLetter) bool { return strings.Contains(string(l.Document), "topic") })
	if at < 0 {
		t.Fatal("no letter stands for those beyond")
	}
	rest := letters[at]
	if rest.Attempts != 2000 || rest.Position != "partition 3, offset 4099" || !strings.Contains(rest.Hint, "more than 10000 messages") {
		t.Errorf("the last letter: %+v", rest)
	}
}

// TestFeedMissed: messages that a topic lost queue a run of the difference for each repository that they may concern, one while it is
// queued, and their offsets add up in the repository's cell; nothing is stored when the queue rejects the run.
func TestFeedMissed(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  ingest.FeedConfig
		want []string
	}{
		"events":   {ingest.FeedConfig{Topic: "t", Repositories: []string{"song.ca", "lyric"}}, []string{"run lyric", "run song.ca"}},
		"requests": {ingest.FeedConfig{Topic: "t", Requests: true}, []string{"run local", "run lyric", "run lyric.4", "run song.ca", "run song.jp"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			f, err := w.service.NewFeed(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.publish = func(core.Request) error { return core.NewError(core.CodeOverloaded, "the queue is full") }
			if err := f.Missed(t.Context(), core.TopicGap{Offsets: 5, Reason: "r"}); core.CodeOf(err) != core.CodeOverloaded {
				t.Errorf("with a full queue: %v", err)
			}
			w.publish = nil
			for range 2 {
				if err := f.Missed(t.Context(), core.TopicGap{Offsets: 5, Reason: "r"}); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.asked(); !slices.Equal(got, tt.want) {
				t.Errorf("requested %q, want %q", got, tt.want)
			}
			for _, r := range w.requests() {
				if !r.Difference || r.Cause != core.CauseKafka {
					t.Errorf("request %+v", r)
				}
				value, _, err := w.Cell(t.Context(), ingest.GapCell(r.Repository))
				var gap ingest.Gap
				if err != nil || json.Unmarshal([]byte(value), &gap) != nil || gap.Offsets != 10 || gap.JobID != r.JobID || gap.Topic != "t" || gap.Reason != "r" {
					t.Errorf("the cell of %s: %q, %v", r.Repository, value, err)
				}
			}
		})
	}
}
