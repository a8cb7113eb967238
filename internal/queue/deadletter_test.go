package queue_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tutti/internal/core"
	"tutti/internal/queue"
)

func letter(organization, id, reason string) core.DeadLetter {
	return core.DeadLetter{
		Repository: "song", Organization: organization, RecordID: id, Reason: reason, Hint: "correct the record", Attempts: 2,
		EngineType: "document_parsing_exception", EngineReason: "failed to parse", Document: []byte(`{"a":1}`), Size: 7,
	}
}

func mustPut(t *testing.T, q *queue.Queue, letters ...core.DeadLetter) {
	t.Helper()
	for _, l := range letters {
		if err := q.DeadLetters().Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, q *queue.Queue, repository, reason string) []core.DeadLetter {
	t.Helper()
	letters, next, err := q.DeadLetters().List(t.Context(), core.DeadLetterFilter{Repository: repository, Reason: reason})
	if err != nil || next != "" {
		t.Fatalf("next %q, %v", next, err)
	}
	return letters
}

func TestDeadLetterLifecycle(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		d := q.DeadLetters()
		if d.Has("song", "S1", "A1") {
			t.Fatal("a letter before the first")
		}
		first := letter("S1", "A1", core.ReasonRejected)
		mustPut(t, q, first)
		if !d.Has("song", "S1", "A1") || d.Has("song", "S1", "A2") || d.Has("song", "S2", "A1") || d.Has("x", "S1", "A1") {
			t.Fatal("Has is wrong")
		}
		got := list(t, q, "", "")[0]
		ignore := cmpopts.IgnoreFields(core.DeadLetter{}, "ID", "FirstAt", "LastAt")
		if diff := cmp.Diff(first, got, ignore); diff != "" {
			t.Fatal(diff)
		}
		if got.ID == "" || url.PathEscape(got.ID) != got.ID || got.FirstAt.IsZero() || !got.FirstAt.Equal(got.LastAt) {
			t.Fatalf("letter %+v", got)
		}

		second := letter("S1", "A1", core.ReasonTooLarge)
		mustPut(t, q, second)
		again, err := d.Get(t.Context(), got.ID)
		if err != nil {
			t.Fatal(err)
		}
		if again.ID != got.ID || again.Attempts != 4 || !again.FirstAt.Equal(got.FirstAt) ||
			!again.LastAt.After(got.LastAt) || again.Reason != core.ReasonTooLarge {
			t.Fatalf("letter %+v", again)
		}
		if n := d.Count()["song"]; n != 1 {
			t.Errorf("%d letters", n)
		}

		for range 2 {
			if err := d.Clear(t.Context(), "song", "S1", "A1", 0, nil); err != nil {
				t.Fatal(err)
			}
			if d.Has("song", "S1", "A1") || len(list(t, q, "", "")) != 0 || len(d.Count()) != 0 {
				t.Fatal("the letter still exists")
			}
		}
		_, err = d.Get(t.Context(), got.ID)
		wantCode(t, err, core.CodeNotFound)

		mustPut(t, q, first)
		fresh, err := d.Get(t.Context(), got.ID)
		if err != nil || fresh.Attempts != 2 {
			t.Fatalf("letter %+v, %v", fresh, err)
		}
		if err := d.Delete(t.Context(), got.ID); err != nil {
			t.Fatal(err)
		}
		wantCode(t, d.Delete(t.Context(), got.ID), core.CodeNotFound)
	})
}

func TestDeadLettersWithUnusualIDs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		d := q.DeadLetters()
		long := strings.Repeat("é", 1<<20)
		parts := [][3]string{
			{"", "", ""},
			{"song", "", "A"},
			{"song", "A", ""},
			{"song", "~", "A"},
			{"song", "S1", strings.Repeat("x", 512)},
			{"song", "S1", strings.Repeat("x", 513)},
			{"song", "S1", strings.Repeat("x", 514)},
			{"song", "S1", "a\x00\n\"'*.>"},
			{"song", "S1", "no UTF-8 \xff"},
			{long, long, long},
		}
		for i, p := range parts {
			if d.Has(p[0], p[1], p[2]) {
				t.Fatalf("letter %d exists before it was added", i)
			}
			mustPut(t, q, core.DeadLetter{
				Repository: p[0], Organization: p[1], RecordID: p[2], Reason: core.ReasonInvalidID, Attempts: 1,
				Request: &core.Request{RecordID: p[2]},
			})
			if !d.Has(p[0], p[1], p[2]) {
				t.Fatalf("letter %d is missing", i)
			}
		}
		letters := list(t, q, "", "")
		if len(letters) != len(parts) {
			t.Fatalf("%d letters of %d", len(letters), len(parts))
		}
		for _, l := range letters {
			if _, err := d.Get(t.Context(), l.ID); err != nil {
				t.Errorf("letter %s: %v", l.ID, err)
			}
		}
		for i, p := range parts {
			if err := d.Clear(t.Context(), p[0], p[1], p[2], 0, nil); err != nil || d.Has(p[0], p[1], p[2]) {
				t.Errorf("letter %d was not removed: %v", i, err)
			}
		}
	})
}

func TestLargestDeadLetter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		huge := strings.Repeat("\x01", 3<<20) // Six bytes each in JSON.
		kept := core.NewDeadLetterDocument([]byte(huge))
		mustPut(t, q, core.DeadLetter{
			Repository: "song", Organization: "S1", RecordID: "A1", Reason: huge, Hint: huge, EngineType: huge,
			EngineReason: huge, Document: kept.Bytes, Size: kept.Size, SHA256: kept.SHA256, Truncated: kept.Truncated,
			Request: &core.Request{ID: huge, RecordID: huge, Traceparent: huge},
		})
		l := list(t, q, "song", "")[0]
		if !l.Truncated || l.Size != 3<<20 || len(l.Document) == 0 || !bytes.HasPrefix([]byte(huge), l.Document) {
			t.Errorf("%d bytes of %d kept", len(l.Document), l.Size)
		}
		plain := core.NewDeadLetterDocument(bytes.Repeat([]byte("x"), 1<<20))
		mustPut(t, q, core.DeadLetter{
			Repository: "song", RecordID: "A2", Reason: core.ReasonRejected, EngineReason: "short",
			Document: plain.Bytes, Size: plain.Size, SHA256: plain.SHA256, Truncated: plain.Truncated,
		})
		if l := list(t, q, "song", core.ReasonRejected)[0]; len(l.Document) != core.MaxDeadLetterBytes {
			t.Errorf("%d bytes kept of an ordinary large document", len(l.Document))
		}
	})
}

func TestListDeadLetters(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		d := q.DeadLetters()
		for i := range 10 {
			reason := core.ReasonRejected
			if i%2 == 1 {
				reason = core.ReasonUpstream
			}
			mustPut(t, q, letter("S1", numbered(i), reason))
		}
		other := letter("S1", "A", core.ReasonRejected)
		other.Repository = "other"
		mustPut(t, q, other, letter("S1", numbered(4), core.ReasonRejected))

		var got []string
		cursor := ""
		for pages := 0; ; pages++ {
			letters, next, err := d.List(t.Context(), core.DeadLetterFilter{Repository: "song", Reason: core.ReasonRejected, Limit: 2, Cursor: cursor})
			if err != nil || len(letters) > 2 || pages > 5 {
				t.Fatalf("%d letters, %v", len(letters), err)
			}
			for _, l := range letters {
				got = append(got, l.RecordID)
			}
			if pages == 0 {
				// Written while the list is read page by page: not listed twice, and the next page has no gap.
				mustPut(t, q, letter("S1", numbered(2), core.ReasonRejected))
				if err := d.Clear(t.Context(), "song", "S1", numbered(6), 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			if cursor = next; next == "" {
				break
			}
		}
		want := []string{numbered(4), numbered(8), numbered(0)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if n := len(list(t, q, "", "")); n != 10 {
			t.Errorf("%d letters in all", n)
		}
		if n := len(list(t, q, "nobody", "")); n != 0 {
			t.Errorf("%d letters of nobody", n)
		}
		for _, bad := range []string{"0", "-1", "!", "zzzzzzzzzzzzzzzzzzzz"} {
			_, _, err := d.List(t.Context(), core.DeadLetterFilter{Cursor: bad})
			wantCode(t, err, core.CodeInvalid)
		}
	})
}

// TestDeadLettersOfAnID: the dead letters of records with an id are found in every repository and organization, and no others.
func TestDeadLettersOfAnID(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	other := letter("S2", "A1", core.ReasonRejected)
	other.Repository = "lyric"
	message := core.DeadLetter{Repository: "song", Source: "webhook", Reason: core.ReasonNotUnderstood, Document: []byte("x"), Size: 1}
	long := strings.Repeat("x", 2*core.MaxIDBytes)
	mustPut(t, q, letter("S1", "A1", core.ReasonRejected), other, letter("S1", "A11", core.ReasonRejected), letter("A1", "A2", core.ReasonRejected), letter("S1", long, core.ReasonInvalidID), message)
	for id, want := range map[string]string{"A1": "lyric/S2 song/S1 ", "A2": "song/A1 ", "S1": "", "A": "", "": "", long: "song/S1 "} {
		var got string
		found, err := q.DeadLetters().FindRecords(t.Context(), id)
		for _, l := range found {
			got += l.Repository + "/" + l.Organization + " "
			if l.RecordID != id {
				t.Errorf("%.20s: found %.20s", id, l.RecordID)
			}
		}
		if err != nil || got != want {
			t.Errorf("%.20s: %q, %v", id, got, err)
		}
	}
}

// TestDeadLettersOfAFilter: each filter lists what it matches, and nothing else.
func TestDeadLettersOfAFilter(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	all := []core.DeadLetter{
		letter("S1", "A1", core.ReasonRejected), letter("S1", "A2", core.ReasonUpstream), letter("A1", "S1", core.ReasonRejected), letter("", "A3", core.ReasonRejected),
		{Repository: "song", Source: "webhook", Reason: core.ReasonNotUnderstood, Document: []byte("x"), Size: 1},
	}
	other := letter("S1", "A1", core.ReasonRejected)
	other.Repository = "lyric"
	all = append(all, other)
	mustPut(t, q, all...)
	for _, repository := range []string{"", "song", "lyric"} {
		for _, organization := range []string{"", "S1", "A1", "S", "A3"} {
			for _, reason := range []string{"", core.ReasonRejected, core.ReasonUpstream} {
				f := core.DeadLetterFilter{Repository: repository, Organization: organization, Reason: reason}
				letters, _, err := q.DeadLetters().List(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				want := 0
				for _, l := range all {
					if f.Matches(l) {
						want++
					}
				}
				if len(letters) != want || slices.ContainsFunc(letters, func(l core.DeadLetter) bool { return !f.Matches(l) }) {
					t.Errorf("%+v: %d letters, want %d", f, len(letters), want)
				}
			}
		}
	}
}

func TestDeadLettersOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		a, b := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
		mustPut(t, a, letter("S1", "A1", core.ReasonRejected), letter("S1", "A2", core.ReasonRejected))
		eventually(t, "the letters in the other process", func() bool {
			return b.DeadLetters().Has("song", "S1", "A1") && b.DeadLetters().Has("song", "S1", "A2")
		})
		if l, err := b.DeadLetters().Find(t.Context(), "song", "S1", "A1"); err != nil || l.RecordID != "A1" {
			t.Errorf("found %+v, %v", l, err)
		}
		if err := b.DeadLetters().Clear(t.Context(), "song", "S1", "A1", 0, nil); err != nil {
			t.Fatal(err)
		}
		_, err := b.DeadLetters().Find(t.Context(), "song", "S1", "A1")
		wantCode(t, err, core.CodeNotFound)
		eventually(t, "the removal in the other process", func() bool { return !a.DeadLetters().Has("song", "S1", "A1") })
		late := s.connect(t, queue.Config{})
		if late.DeadLetters().Has("song", "S1", "A1") || !late.DeadLetters().Has("song", "S1", "A2") {
			t.Error("a process that comes later knows other letters")
		}
		var putting sync.WaitGroup
		for i := range 20 {
			q := []*queue.Queue{a, b}[i%2]
			putting.Go(func() {
				if err := q.DeadLetters().Put(context.WithoutCancel(t.Context()), letter("S1", "A3", "r")); err != nil {
					t.Error(err)
				}
			})
		}
		putting.Wait()
		letters := list(t, a, "song", "r")
		if len(letters) != 1 || letters[0].Attempts != 40 {
			t.Errorf("letters %+v", letters)
		}
	})
}

// TestDeadLetterDocumentsAreLimited: over the limit a dead letter of a repository keeps the size and hash of its document, not the
// document. A letter that replaces one with a document may keep its own, and a removed document makes room for another. The text of
// a message, which cannot be fetched again, is always kept and does not count.
func TestDeadLetterDocumentsAreLimited(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		cfg := queue.Config{MaxDeadLetterBodies: 2}
		q := s.connect(t, cfg)
		kept := core.NewDeadLetterDocument([]byte(`{"a":1}`))
		withDocument := func(repository, id, hint string) core.DeadLetter {
			l := letter("S1", id, core.ReasonRejected)
			l.Repository, l.Hint, l.Document, l.Size, l.SHA256 = repository, hint, kept.Bytes, kept.Size, kept.SHA256
			return l
		}
		wantBody := func(q *queue.Queue, repository, id, hint string, want bool) {
			t.Helper()
			l := withDocument(repository, id, hint)
			mustPut(t, q, l)
			got, err := q.DeadLetters().Get(t.Context(), q.DeadLetters().DeadLetterID(l))
			if err != nil {
				t.Fatal(err)
			}
			if (len(got.Document) > 0) != want || got.Truncated == want || got.Size != kept.Size || got.SHA256 != kept.SHA256 {
				t.Errorf("%s of %s: document %q, truncated %v, %d bytes, %s", id, repository, got.Document, got.Truncated,
					got.Size, got.SHA256)
			}
			if !want {
				hint = strings.TrimPrefix(hint+"; the document was not stored: this repository already has 2 dead letters with a document (deadLetters.maxBodies)", "; ")
			}
			if got.Hint != hint {
				t.Errorf("%s of %s: hint %q", id, repository, got.Hint)
			}
		}
		bare := letter("S1", "bare", core.ReasonUpstream)
		bare.Document = nil
		mustPut(t, q, bare, bare)
		wantMessage := func(q *queue.Queue, hash string) {
			t.Helper()
			l := core.DeadLetter{
				Repository: "song", Reason: core.ReasonNotUnderstood, Source: "kafka song-analysis", Document: []byte("{}"), SHA256: hash,
			}
			mustPut(t, q, l)
			got, err := q.DeadLetters().Get(t.Context(), q.DeadLetters().DeadLetterID(l))
			if err != nil || string(got.Document) != "{}" || got.Truncated || got.Hint != "" {
				t.Errorf("message %s: %+v, %v", hash, got, err)
			}
		}
		wantMessage(q, "00")
		wantMessage(q, "01")
		wantBody(q, "song", "A1", "correct the record", true)
		wantBody(q, "song", "A2", "", true)
		wantBody(q, "song", "A3", "correct the record", false)
		wantBody(q, "song", "A4", "", false)
		wantBody(q, "other", "A1", "", true)
		wantBody(q, "song", "A1", "again", true)

		late := s.connect(t, cfg)
		wantBody(late, "song", "A5", "", false)
		wantMessage(late, "02")
		if err := late.DeadLetters().Clear(t.Context(), "song", "S1", "A2", 0, nil); err != nil {
			t.Fatal(err)
		}
		wantBody(late, "song", "A3", "", true)
		wantBody(late, "song", "A6", "", false)
		wantBody(s.connect(t, queue.Config{MaxDeadLetterBodies: 3}), "song", "A6", "", true)
	})
}

// TestDeadLettersAreCounted: the counts follow letters that are added, change their reason and are removed.
func TestDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	d := q.DeadLetters()
	want := func(rejected, tooLarge int) {
		t.Helper()
		counts := map[string]int{}
		if rejected+tooLarge > 0 {
			counts["song"] = rejected + tooLarge
		}
		if diff := cmp.Diff(counts, d.Count()); diff != "" {
			t.Error(diff)
		}
		if a, b := d.CountReason("song", core.ReasonRejected), d.CountReason("song", core.ReasonTooLarge); a != rejected || b != tooLarge {
			t.Errorf("%d rejected, %d too large, want %d and %d", a, b, rejected, tooLarge)
		}
	}
	mustPut(t, q, letter("S1", "A1", core.ReasonRejected), letter("S1", "A2", core.ReasonRejected), letter("S1", "A1", core.ReasonRejected))
	want(2, 0)
	mustPut(t, q, letter("S1", "A1", core.ReasonTooLarge))
	want(1, 1)
	for _, id := range []string{"A1", "A2", "A3"} {
		if err := d.Clear(t.Context(), "song", "S1", id, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	want(0, 0)
	mustPut(t, q, letter("S1", "A1", core.ReasonRejected))
	want(1, 0)
}

func TestDeadLettersAfterRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "127.0.0.1:0")
	q, other := s.connect(t, queue.Config{}), s.connect(t, queue.Config{})
	mustPut(t, q, letter("S1", "A1", core.ReasonRejected))
	s.stop(t)
	s.start(t)
	eventually(t, "a letter after the restart", func() bool {
		return other.DeadLetters().Put(t.Context(), letter("S1", "A2", core.ReasonRejected)) == nil
	})
	eventually(t, "the watch after the restart", func() bool {
		return q.DeadLetters().Has("song", "S1", "A1") && q.DeadLetters().Has("song", "S1", "A2")
	})
}

func TestHasAllocatesNothing(t *testing.T) {
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	d := q.DeadLetters()
	for _, state := range []string{"without letters", "with letters"} {
		if n := testing.AllocsPerRun(1000, func() { d.Has("song", "S1", "A1") }); n != 0 {
			t.Errorf("%s: %v allocations", state, n)
		}
		mustPut(t, q, letter("S1", "A1", core.ReasonRejected))
	}
}

func BenchmarkHas(b *testing.B) {
	for _, n := range []int{0, 100} {
		b.Run(fmt.Sprintf("letters=%d", n), func(b *testing.B) {
			d := benchQueue(b).DeadLetters()
			for i := range n {
				if err := d.Put(b.Context(), letter("S1", numbered(i), "r")); err != nil {
					b.Fatal(err)
				}
			}
			id := base64.StdEncoding.EncodeToString([]byte(time.Now().String()))
			for b.Loop() {
				d.Has("song", "S1", id)
			}
		})
	}
}

// TestMoveNotStored: a Request whose dead letter cannot be stored stays in the queue.
func TestMoveNotStored(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	mustPublish(t, q, record("S1", "A1"))
	_, js := raw(t, q)
	if err := js.DeleteStream(t.Context(), queue.StreamDeadLetters); err != nil {
		t.Fatal(err)
	}
	if moved, err := q.MoveUnknown(t.Context(), []string{"other"}); err == nil || moved != 0 {
		t.Errorf("moved %d, %v", moved, err)
	}
	if n := held(t, js, queue.StreamRequests); n != 1 {
		t.Errorf("%d Requests are left", n)
	}
}

// TestDeadLettersOfMessages: a message that was not understood is kept once for each source and content.
func TestDeadLettersOfMessages(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	letters := q.DeadLetters()
	for _, m := range []struct{ source, document string }{
		{"webhook", `{"a":1}`}, {"webhook", `{"a":2}`}, {"kafka song-analysis", `{"a":1}`}, {"webhook", `{"a":1}`},
	} {
		kept := core.NewDeadLetterDocument([]byte(m.document))
		l := core.DeadLetter{
			Repository: "song", Reason: core.ReasonNotUnderstood, Source: m.source, Attempts: 1,
			Document: kept.Bytes, SHA256: kept.SHA256, Size: kept.Size,
		}
		if err := letters.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		got, err := letters.Get(t.Context(), letters.DeadLetterID(l))
		if err != nil || got.Source != m.source || string(got.Document) != m.document {
			t.Errorf("%+v: got %+v, %v", m, got, err)
		}
	}
	all, _, err := letters.List(t.Context(), core.DeadLetterFilter{Repository: "song", Limit: 100})
	if err != nil || len(all) != 3 || all[0].Attempts != 2 {
		t.Errorf("%d letters, %v: %+v", len(all), err, all)
	}
	if n := letters.CountReason("song", core.ReasonNotUnderstood); n != 3 {
		t.Errorf("%d letters are counted, want 3", n)
	}
	if n := letters.CountReason("song", core.ReasonRejected) + letters.CountReason("other", core.ReasonNotUnderstood); n != 0 {
		t.Errorf("%d letters of others are counted", n)
	}
	if letters.Has("song", "", "") {
		t.Error("a message's letter counts as a record's")
	}
}
