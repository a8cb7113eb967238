package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"tutti/ingest"
	"tutti/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("CEST", 7200))

func nowAtNoon() time.Time { return noon }

func repositories() []core.Repository {
	return []core.Repository{
		{Code: "song.ca", Type: core.TypeSong, IndexName: "analyses"},
		{Code: "song.jp", Type: core.TypeSong, IndexName: "analyses_jp"},
	}
}

func newService(t *testing.T, q *queueFake, cfg ingest.Config) *ingest.Service {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return noon }
	}
	s, err := ingest.New(repositories(), q, q, q, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// record returns the RecordRef of a record.
func record(t *testing.T, repository, organization, id string) core.RecordRef {
	t.Helper()
	ref, err := core.NewRecordRef(repository, organization, id)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func wantError(t *testing.T, err error, code core.Code, text string) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Errorf("code: got %q (%v), want %q", core.CodeOf(err), err, code)
	}
	if err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("message: got %q, want it to hold %q", err, text)
	}
}

func TestNewRefusesTwoRepositoriesWithOneCode(t *testing.T) {
	q := &queueFake{}
	_, err := ingest.New(append(repositories(), core.Repository{Code: "song.ca"}), q, q, q, ingest.Config{})
	wantError(t, err, core.CodeInvalid, `repository "song.ca" is configured twice`)
	_, err = ingest.New(nil, q, q, q, ingest.Config{JoinWait: -1})
	wantError(t, err, core.CodeInvalid, "negative")
}

func TestRecordPublishesOneRequest(t *testing.T) {
	for _, kind := range []core.Kind{core.KindIndex, core.KindRemove} {
		t.Run(string(kind), func(t *testing.T) {
			q := &queueFake{}
			index, err := newService(t, q, ingest.Config{}).Record(t.Context(), kind, record(t, "song.jp", "LIRI-JP", "a/b"), "req-1")
			if err != nil || index != "analyses_jp" {
				t.Fatalf("got %q, %v", index, err)
			}
			want := []core.Request{{
				ID: "req-1", Kind: kind, Scope: core.ScopeRecord, Repository: "song.jp", Organization: "LIRI-JP",
				RecordID: "a/b", Cause: core.CauseREST, ReceivedAt: noon.UTC(),
			}}
			if diff := cmp.Diff(want, q.requests()); diff != "" {
				t.Error(diff)
			}
			if loc := q.requests()[0].ReceivedAt.Location(); loc != time.UTC {
				t.Errorf("receivedAt is in %v", loc)
			}
		})
	}
}

func TestRecordMakesAMissingRequestID(t *testing.T) {
	q := &queueFake{}
	if _, err := newService(t, q, ingest.Config{}).Record(t.Context(), core.KindIndex, record(t, "song.ca", "S", "A"), ""); err != nil {
		t.Fatal(err)
	}
	if id := q.requests()[0].ID; len(id) != 36 || id[14] != '7' {
		t.Errorf("got id %q, want a UUID of version 7", id)
	}
}

func TestRecordOfUnknownRepository(t *testing.T) {
	for _, repository := range []string{"song.de", "SONG.CA"} {
		q := &queueFake{}
		_, err := newService(t, q, ingest.Config{}).Record(t.Context(), core.KindIndex, record(t, repository, "S", "A"), "r")
		wantError(t, err, core.CodeNotFound, `repository "`+repository+`" is not configured`)
		if n := len(q.requests()); n != 0 {
			t.Errorf("%d requests were published", n)
		}
	}
}

func TestRecordGivesTheQueuesRefusal(t *testing.T) {
	q := &queueFake{}
	q.publish = func(core.Request) error {
		return &core.Error{Code: core.CodeOverloaded, Message: "the queue is full", RetryAfter: 3 * time.Second}
	}
	_, err := newService(t, q, ingest.Config{}).Record(t.Context(), core.KindIndex, record(t, "song.ca", "S", "A"), "r")
	wantError(t, err, core.CodeOverloaded, "publishing a record request: the queue is full")
	if core.RetryAfterOf(err) != 3*time.Second {
		t.Errorf("got retry after %v", core.RetryAfterOf(err))
	}
}

func TestMetricsCountTriggers(t *testing.T) {
	reg := prometheus.NewRegistry()
	q := &queueFake{}
	s := newService(t, q, ingest.Config{Metrics: ingest.NewMetrics(reg)})
	ctx := t.Context()
	_, err1 := s.Record(ctx, core.KindIndex, record(t, "song.ca", "S", "A"), "r")
	_, err2 := s.Record(ctx, core.KindRemove, record(t, "song.ca", "S", "A"), "r")
	_, err3 := s.Run(ctx, core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "r")
	_, err4 := s.Run(ctx, core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseReconcile, "r") // joins
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	// A trigger that is refused before the queue is not counted, one that the queue refuses is.
	if _, err := s.Record(ctx, core.KindIndex, record(t, "song.de", "S", "A"), "r"); err == nil {
		t.Fatal("want an error")
	}
	q.publish = func(core.Request) error { return core.NewError(core.CodeUnavailable, "gone") }
	if _, err := s.Record(ctx, core.KindIndex, record(t, "song.ca", "S", "A"), "r"); err == nil {
		t.Fatal("want an error")
	}
	want := `
# HELP tutti_requests_received_total Triggers that passed validation, by source and kind.
# TYPE tutti_requests_received_total counter
tutti_requests_received_total{kind="index",source="reconcile"} 1
tutti_requests_received_total{kind="index",source="rest"} 3
tutti_requests_received_total{kind="remove",source="rest"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func ExampleService_Record() {
	q := &queueFake{}
	s, err := ingest.New(repositories(), q, q, q, ingest.Config{})
	if err != nil {
		return
	}
	record, err := core.NewRecordRef("song.ca", "PACA-CA", "A1")
	if err != nil {
		return
	}
	index, err := s.Record(context.Background(), core.KindIndex, record, "req-1")
	if err != nil {
		return
	}
	fmt.Println(index)
	// Output: analyses
}
