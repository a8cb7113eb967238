package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/subjects"
)

// TestEachPageOfDeadLetters: the pages hold every dead letter that any process had stored at the call, once, the newest first, without
// those that are removed during the call; a later call goes on at a cursor, and does not return what has failed since.
func TestEachPageOfDeadLetters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		a, b := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
		other := letter("S1", "other", core.ReasonRejected)
		other.Repository = "other"
		mustPut(t, a, other)
		for i := range 10 {
			mustPut(t, a, letter("S1", numbered(i), core.ReasonRejected))
			mustPut(t, a, letter("S2", numbered(i), core.ReasonUpstream))
		}
		var got []string
		var cursors []string
		note := func(page []core.DeadLetter, count, left int, next string) {
			line := fmt.Sprintf("%d, %d left:", count, left)
			for _, l := range page {
				line += " " + l.RecordID
				if l.Document != nil {
					t.Errorf("%s has a document", l.RecordID)
				}
			}
			got, cursors = append(got, line), append(cursors, next)
		}
		filter := core.DeadLetterFilter{Repository: "song", Reason: core.ReasonRejected, Limit: 4}
		err := b.DeadLetters().EachPage(t.Context(), filter, func(page []core.DeadLetter, count, left int, next string) error {
			if note(page, count, left, next); len(got) == 1 {
				mustPut(t, a, letter("S1", numbered(9), core.ReasonRejected), letter("S1", "new", core.ReasonRejected), letter("S1", numbered(5), core.ReasonUpstream))
				if err := a.DeadLetters().Clear(t.Context(), "song", "S1", numbered(1), 0, func(core.DeadLetter) bool { return true }); err != nil {
					return err
				}
				eventually(t, "the removal", func() bool { return !b.DeadLetters().Has("song", "S1", numbered(1)) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"4, 6 left: id-00009 id-00008 id-00007 id-00006", "4, 2 left: id-00004 id-00003 id-00002", "2, 0 left: id-00000",
		}
		filter.Limit, filter.Cursor = 9, cursors[0]
		if err := b.DeadLetters().EachPage(t.Context(), filter, func(page []core.DeadLetter, count, left int, next string) error {
			note(page, count, left, next)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want = append(want, "4, 0 left: id-00004 id-00003 id-00002 id-00000")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for filter, n := range map[core.DeadLetterFilter]int{
			{}: 21, {Repository: "other"}: 1, {Organization: "S2"}: 10, {Reason: core.ReasonUpstream}: 11, {Repository: "none"}: 0,
		} {
			listed := 0
			filter.Limit = 5
			if err := b.DeadLetters().EachPage(t.Context(), filter, func(page []core.DeadLetter, _, _ int, _ string) error {
				listed += len(page)
				return nil
			}); err != nil || listed != n {
				t.Errorf("%+v: %d dead letters, %v, want %d", filter, listed, err, n)
			}
		}
		stop := errors.New("stop")
		err = b.DeadLetters().EachPage(t.Context(), core.DeadLetterFilter{Limit: 5}, func([]core.DeadLetter, int, int, string) error { return stop })
		if !errors.Is(err, stop) {
			t.Error(err)
		}
		wantCode(t, b.DeadLetters().EachPage(t.Context(), core.DeadLetterFilter{Limit: 5, Cursor: "!"}, nil), core.CodeInvalid)
	})
}

// TestEachPageOfUnreadable: a dead letter that cannot be decoded does not hide the others.
func TestEachPageOfUnreadable(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	mustPut(t, q, letter("S1", "A", core.ReasonRejected))
	_, js := raw(t, q)
	subject := subjects.OfRecordDeadLetter("song", "S1", "B")
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte("{"), Header: nats.Header{"Tutti-Reason": {"rejected"}}}); err != nil {
		t.Fatal(err)
	}
	var got []core.DeadLetter
	if err := q.DeadLetters().EachPage(t.Context(), core.DeadLetterFilter{Limit: 5}, func(page []core.DeadLetter, _, _ int, _ string) error {
		got = append(got, page...)
		return nil
	}); err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].ID != q.DeadLetters().DeadLetterID(letter("S1", "B", "")) || got[0].RecordID != "" || got[1].RecordID != "A" {
		t.Errorf("%+v", got)
	}
}

// TestEachPageNamesRequests: the pages have what the retry of each dead letter needs. Where its subject names that, it is not read: its
// document is large.
func TestEachPageNamesRequests(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	record := func(change func(*core.DeadLetter)) core.DeadLetter {
		l := letter("S1", "A", core.ReasonRejected)
		l.Version = 5
		l.Request = &core.Request{Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: "song", Organization: "S1", RecordID: "A", Cause: core.CauseKafka}
		change(&l)
		return l
	}
	letters := []core.DeadLetter{
		record(func(*core.DeadLetter) {}),
		record(func(l *core.DeadLetter) {
			l.RecordID, l.Request = "of a page", &core.Request{Scope: core.ScopePage, Page: &core.Page{}}
		}),
		record(func(l *core.DeadLetter) { l.RecordID, l.Organization, l.Request = "none", "", nil }),
		record(func(l *core.DeadLetter) {
			l.RecordID, l.Organization, l.Request = "long", strings.Repeat("x", 600), nil
		}),
		record(func(l *core.DeadLetter) { l.RecordID = "file" }),
		record(func(l *core.DeadLetter) {
			l.RecordID, l.Request.RecordID, l.Request.Organization = "moved", "moved", "S2"
		}),
		record(func(l *core.DeadLetter) {
			l.RecordID, l.Request.RecordID, l.Request.Kind, l.Request.AsOf = "removed", "removed", core.KindRemove, 7
		}),
		record(func(l *core.DeadLetter) {
			l.RecordID, l.Request.RecordID, l.Request.Part = "part", "part", &core.Part{Entity: "sample"}
		}),
	}
	mustPut(t, q, letters...)
	pages := func() (got []core.DeadLetter) {
		t.Helper()
		if err := q.DeadLetters().EachPage(t.Context(), core.DeadLetterFilter{Limit: 50}, func(page []core.DeadLetter, _, _ int, _ string) error {
			got = append(got, page...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	slices.Reverse(letters)
	got := pages()
	if len(got) != len(letters) {
		t.Fatalf("%d dead letters: %+v", len(got), got)
	}
	for i, l := range letters {
		if diff := cmp.Diff(l.RecordRequest(), got[i].RecordRequest()); diff != "" || got[i].Reason != l.Reason || got[i].Version != l.Version || got[i].ID == "" {
			t.Errorf("%s: %+v\n%s", l.RecordID, got[i], diff)
		}
	}

	_, js := raw(t, q)
	stored, err := js.Stream(t.Context(), "DEAD_LETTERS")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, l := range letters {
		m, err := stored.GetLastMsgForSubject(t.Context(), subjects.OfDeadLetter(l))
		if err != nil {
			t.Fatal(err)
		}
		m.Header.Del("Nats-Expected-Last-Subject-Sequence")
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: []byte("{")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range pages() {
		if l.RecordID == "" {
			read++
		}
	}
	if read != 5 {
		t.Errorf("%d of %d dead letters were read, want 5", read, len(letters))
	}
}

// TestRetryRequests: the retries of all filters have one consumer, whichever repositories are configured, and keep their jobs alive.
func TestRetryRequests(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{MaxPending: 8})
		retries := []core.Request{
			{ID: "1", Kind: core.KindIndex, Scope: core.ScopeRetry, JobID: "j1", Cause: core.CauseREST},
			{ID: "2", Kind: core.KindIndex, Scope: core.ScopeRetry, Repository: "gone", Reason: core.ReasonRejected, JobID: "j2", Cause: core.CauseREST},
		}
		mustPublish(t, q, retries...)
		for _, class := range []core.Class{core.ClassRecords, core.ClassBatches, core.ClassPages, core.ClassRuns} {
			fetchNone(t, mustConsumer(t, q, class, queue.ConsumerConfig{}))
		}
		first, err := q.Consumer(t.Context(), "", core.ClassRetries, queue.ConsumerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		first.Close()
		if moved, err := q.MoveUnknown(t.Context(), []string{"song"}); moved != 0 || err != nil {
			t.Errorf("%d retries were moved to the dead letters, %v", moved, err)
		}
		c := mustConsumer(t, q, core.ClassRetries, queue.ConsumerConfig{})
		jobs, err := q.JobIDs(t.Context())
		if diff := cmp.Diff(map[string]struct{}{"j1": {}, "j2": {}}, jobs); diff != "" || err != nil {
			t.Error(diff, err)
		}
		var got []core.Request
		for len(got) < len(retries) {
			for _, m := range fetch(t, c) {
				got = append(got, m.Request())
				mustAck(t, m)
			}
		}
		if diff := cmp.Diff(retries, got); diff != "" {
			t.Error(diff)
		}
		for i := range 5 {
			full, _, _, err := q.Room(t.Context())
			if err != nil || full {
				t.Errorf("with %d requests of 8: half full %v, %v", i, full, err)
			}
			if i < 4 {
				mustPublish(t, q, record("S1", numbered(i)))
			}
		}
		mustPublish(t, q, record("S1", numbered(9)))
		if full, _, _, err := q.Room(context.WithoutCancel(t.Context())); err != nil || !full {
			t.Errorf("with 5 requests of 8: half full %v, %v", full, err)
		}
	})
}

// TestPublishAllKeepsDocuments: the retry of the dead letter of one document of a record is not part of a batch, which names records.
func TestPublishAllKeepsDocuments(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	var rs []core.Request
	for i := range 20 {
		r := record("S1", numbered(i))
		r.Document = "file-" + r.RecordID
		rs = append(rs, r)
	}
	if errs := q.PublishAll(t.Context(), rs); errs != nil {
		t.Fatal(errs)
	}
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	kept := map[string]string{}
	for deadline := time.Now().Add(10 * time.Second); len(kept) < len(rs) && time.Now().Before(deadline); {
		for _, m := range fetch(t, c) {
			kept[m.Request().RecordID] = m.Request().Document
			mustAck(t, m)
		}
	}
	for _, r := range rs {
		if kept[r.RecordID] != r.Document {
			t.Errorf("document %q of record %s became %q", r.Document, r.RecordID, kept[r.RecordID])
		}
	}
}

// TestBlocksOfDeadLetters: the server loads the block of each dead letter that is removed, so blocks have 4 MB, not 8.
func TestBlocksOfDeadLetters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := startServer(t, dir, "").connect(t, queue.Config{})
	document := make([]byte, core.MaxDeadLetterBytes)
	for i := range 30 {
		mustPut(t, q, core.DeadLetter{Source: "webhook", SHA256: numbered(i), Reason: core.ReasonNotUnderstood, Document: document, Size: len(document)})
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "DEAD_LETTERS", "msgs", "*.blk"))
	if err != nil || len(blocks) < 3 {
		t.Fatalf("blocks %q, %v", blocks, err)
	}
	for _, block := range blocks {
		if info, err := os.Stat(block); err != nil || info.Size() > 5<<20 {
			t.Errorf("%s: %v, %v", filepath.Base(block), info, err)
		}
	}
}
