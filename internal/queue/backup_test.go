package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/queue"
)

// backupOf returns the content of all streams.
func backupOf(t *testing.T, q *queue.Queue) map[string][]byte {
	t.Helper()
	streams := map[string][]byte{}
	if err := q.Backup(t.Context(), func(stream string, write func(io.Writer) error) error {
		var out bytes.Buffer
		err := write(&out)
		streams[stream] = out.Bytes()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return streams
}

// restored returns a Queue on a new server with the content of streams.
func restored(t *testing.T, streams map[string][]byte) *queue.Queue {
	t.Helper()
	s := startServer(t, t.TempDir(), "")
	if err := queue.Restore(t.Context(), s, queue.Config{}, func(stream string, restore func(io.Reader) error) error {
		return restore(bytes.NewReader(streams[stream]))
	}); err != nil {
		t.Fatal(err)
	}
	return s.connect(t, queue.Config{})
}

// TestBackup: Requests, dead letters, jobs, cells and signatures are restored with their contents, revisions and times.
func TestBackup(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	ctx := t.Context()
	mustPublish(t, q, record("S1", "A1"))
	mustPublish(t, q, record("S1", "A2"))
	letter := core.DeadLetter{Repository: "song", Organization: "S1", RecordID: "A3", Reason: core.ReasonRejected, Document: []byte(`{"a":1}`)}
	if err := q.DeadLetters().Put(ctx, letter); err != nil {
		t.Fatal(err)
	}
	job := core.Job{ID: "job-1", Scope: core.ScopeRepository, Repository: "song", State: core.JobQueued}
	if err := q.Jobs().Create(ctx, job); err != nil {
		t.Fatal(err)
	}
	if err := q.Cells().SetCell(ctx, "cell", "value", 0); err != nil {
		t.Fatal(err)
	}
	if err := q.Signatures().Remember(ctx, "key"); err != nil {
		t.Fatal(err)
	}
	other := restored(t, backupOf(t, q))
	for _, id := range []string{"A1", "A2"} {
		if p, err := other.PendingRecord(ctx, "song", "S1", id); err != nil || p.Request == nil {
			t.Errorf("%s: %+v, %v", id, p, err)
		}
	}
	letters, _, err := other.DeadLetters().List(ctx, core.DeadLetterFilter{Limit: 10})
	if err != nil || len(letters) != 1 || letters[0].RecordID != "A3" {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
	if got, err := other.Jobs().Get(ctx, "job-1"); err != nil || got.State != core.JobQueued {
		t.Errorf("job %+v, %v", got, err)
	}
	value, revision, err := q.Cells().Cell(ctx, "cell")
	if err != nil {
		t.Fatal(err)
	}
	if v, r, err := other.Cells().Cell(ctx, "cell"); err != nil || v != value || r != revision {
		t.Errorf("cell %q at %d, %v, want %q at %d", v, r, err, value, revision)
	}
	at, err := q.Signatures().FirstSeen(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Signatures().FirstSeen(ctx, "key"); err != nil || !got.Equal(at) {
		t.Errorf("the signature was first seen at %v, %v, want %v", got, err, at)
	}
	if err := other.Ready(ctx); err != nil {
		t.Error(err)
	}
}

// TestBackupOfReplacedRequests: Requests that are replaced by newer ones of their records while they are read are not lost.
func TestBackupOfReplacedRequests(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	const records = 300
	ids := make([]string, records)
	for i := range ids {
		ids[i] = fmt.Sprintf("A%03d", i)
		mustPublish(t, q, record("S1", ids[i]))
	}
	replacing, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	begun := make(chan struct{})
	work.Go(func() {
		for n := 0; replacing.Err() == nil; n++ {
			if err := q.Publish(context.WithoutCancel(replacing), record("S1", ids[records-1-n%records])); err != nil {
				t.Error(err)
				return
			}
			if n == 10 {
				close(begun)
			}
		}
	})
	<-begun
	streams := backupOf(t, q)
	stop()
	work.Wait()
	pending, err := restored(t, streams).PendingRecords(t.Context(), "song", "S1")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, ok := pending[id]; !ok {
			t.Errorf("the Request of %s is lost", id)
		}
	}
}

// TestRestoreTruncated: a stream without its end is an error.
func TestRestoreTruncated(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	mustPublish(t, q, record("S1", "A1"))
	streams := backupOf(t, q)
	err := queue.Restore(t.Context(), startServer(t, t.TempDir(), ""), queue.Config{}, func(stream string, restore func(io.Reader) error) error {
		return restore(bytes.NewReader(streams[stream][:len(streams[stream])-3]))
	})
	if err == nil {
		t.Error("a truncated stream was restored")
	}
}

// TestRunAll: the record that a run of every repository is due is kept until it is marked as done.
func TestRunAll(t *testing.T) {
	t.Parallel()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	is := func(want queue.RunAll) func() error {
		t.Helper()
		due, done, err := q.RunAllDue(t.Context())
		if due != want || err != nil {
			t.Fatalf("%q is due, %v; want %q", due, err, want)
		}
		return done
	}
	is(queue.RunAllNone)
	for _, step := range []struct{ request, due queue.RunAll }{
		{queue.RunAllDifference, queue.RunAllDifference}, {queue.RunAllRecords, queue.RunAllRecords}, {queue.RunAllDifference, queue.RunAllRecords},
	} {
		if err := q.RequestRunAll(t.Context(), step.request); err != nil {
			t.Fatal(err)
		}
		is(step.due)
	}
	if err := is(queue.RunAllRecords)(); err != nil {
		t.Fatal(err)
	}
	is(queue.RunAllNone)
}

// TestCopyTo: Requests, dead letters, jobs, cells and signatures are copied to a cluster; a copy that is repeated changes nothing, and one
// onto the messages of another tutti is refused.
func TestCopyTo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	const records = 600
	for i := range records {
		mustPublish(t, q, record("S1", numbered(i)))
	}
	mustPublish(t, q, record("S1", numbered(0))) // replaces the first
	for i, id := range []string{"kept", "discarded"} {
		letter := core.DeadLetter{Repository: "song", Organization: "S1", RecordID: id, Reason: core.ReasonRejected, Document: []byte(`{"a":1}`)}
		if err := q.DeadLetters().Put(ctx, letter); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := q.DeadLetters().Clear(ctx, "song", "S1", id, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	job := core.Job{ID: "job-1", Scope: core.ScopeRepository, Repository: "song", State: core.JobQueued}
	if err := q.Jobs().Create(ctx, job); err != nil {
		t.Fatal(err)
	}
	if err := q.Cells().SetCell(ctx, "cell", "value", 0); err != nil {
		t.Fatal(err)
	}
	if err := q.Signatures().Remember(ctx, "key"); err != nil {
		t.Fatal(err)
	}
	to := onCluster(t, queue.Config{Replicas: 3})
	for range 2 {
		if err := q.PrepareCopy(ctx, to); err != nil {
			t.Fatal(err)
		}
		n, err := q.CopyTo(ctx, to)
		if err != nil || n < records+4 {
			t.Fatalf("%d messages, %v", n, err)
		}
		pending, err := to.PendingRecords(ctx, "song", "S1")
		if err != nil || len(pending) != records {
			t.Errorf("%d Requests, %v", len(pending), err)
		}
		eventually(t, "the dead letter", func() bool {
			letters, _, err := to.DeadLetters().List(ctx, core.DeadLetterFilter{Limit: 10})
			return err == nil && len(letters) == 1 && letters[0].RecordID == "kept"
		})
		if got, err := to.Jobs().Get(ctx, "job-1"); err != nil || got.State != core.JobQueued {
			t.Errorf("job %+v, %v", got, err)
		}
		value, revision, err := to.Cells().Cell(ctx, "cell")
		if err != nil || value != "value" {
			t.Errorf("cell %q, %v", value, err)
		}
		if err := to.Cells().SetCell(ctx, "cell", "value", revision); err != nil {
			t.Errorf("a copied cell cannot be changed: %v", err)
		}
		if at, err := to.Signatures().FirstSeen(ctx, "key"); err != nil || at.IsZero() {
			t.Errorf("the signature was first seen at %v, %v", at, err)
		}
	}
	other := startServer(t, t.TempDir(), "").connect(t, queue.Config{})
	mustPublish(t, other, record("S1", "A1"))
	err := other.PrepareCopy(ctx, to)
	const hint = "name servers in queue.url on which no tutti was started yet, or delete the streams of tutti there"
	if wantCode(t, err, core.CodeConflict); core.HintOf(err) != hint {
		t.Errorf("the hint is %q", core.HintOf(err))
	}

	// A move that did not end, of which the source has processed a Request and a dead letter since.
	if err := to.SetMoving(ctx, "queue"); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, to, record("S1", "processed"))
	if err := to.DeadLetters().Put(ctx, core.DeadLetter{Repository: "song", Organization: "S1", RecordID: "solved", Reason: core.ReasonRejected}); err != nil {
		t.Fatal(err)
	}
	err = q.PrepareCopy(ctx, to)
	if err == nil {
		_, err = q.CopyTo(ctx, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := to.PendingRecords(ctx, "song", "S1"); err != nil || len(pending) != records {
		t.Errorf("%d Requests after the repeated move, %v", len(pending), err)
	}
	eventually(t, "the dead letter of the source", func() bool {
		letters, _, err := to.DeadLetters().List(ctx, core.DeadLetterFilter{Limit: 10})
		return err == nil && len(letters) == 1 && letters[0].RecordID == "kept"
	})

	// Without its streams the cluster takes the copies of another tutti.
	nc, js := raw(t, to)
	url := nc.ConnectedUrl()
	for _, stream := range queue.Streams() {
		if err := js.DeleteStream(ctx, stream); err != nil {
			t.Fatal(err)
		}
	}
	again := (&server{url: url}).connect(t, queue.Config{Replicas: 3})
	if err := other.PrepareCopy(ctx, again); err != nil {
		t.Error(err)
	}
	if n, err := other.CopyTo(ctx, again); n == 0 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
}
