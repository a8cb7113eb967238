package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/jobs"
	"tutti/internal/queue/subjects"
)

// killed returns a server on what a SIGKILL of s would leave now: its files, without the state that it writes when it stops.
func (s *server) killed(t *testing.T) *server {
	t.Helper()
	var dir string
	for err := fs.ErrNotExist; errors.Is(err, fs.ErrNotExist); { // the server renamed a file
		dir = t.TempDir()
		if err = os.CopyFS(dir, os.DirFS(s.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return startServer(t, dir, s.listen)
}

// storedBySubject returns the number of messages on each subject of each stream, except probes.
func storedBySubject(t *testing.T, q *queue.Queue) map[string]uint64 {
	t.Helper()
	_, js := raw(t, q)
	all := make(map[string]uint64)
	for _, name := range queue.Streams() {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, info.State.Subjects)
		delete(all, "tutti.probe."+name)
	}
	return all
}

// TestNothingComesBack: what was replaced and then acknowledged or removed is not there after the server was killed, in any stream.
func TestNothingComesBack(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir(), "")
	q := s.connect(t, queue.Config{})
	ctx := t.Context()
	c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
	for range 3 {
		mustPublish(t, q, record("S1", "A1"), record("S1", "A2"))
		mustPut(t, q, letter("S1", "A1", core.ReasonRejected), letter("S1", "A2", core.ReasonRejected))
		if err := q.NoteHandOut(ctx, 1, time.Now(), 1); err != nil {
			t.Fatal(err)
		}
	}
	job := createJob(t, q, "J1")
	if _, err := q.Jobs().CreateOrganization(ctx, job.ID, core.OrganizationRun{Organization: "S1"}); err != nil {
		t.Fatal(err)
	}
	for _, state := range []core.JobState{core.JobRunning, core.JobPaused, core.JobSucceeded} {
		if _, err := q.Jobs().Update(ctx, job.ID, func(j *core.Job) error { j.State = state; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Jobs().UpdateOrganization(ctx, job.ID, "S1", func(o *core.OrganizationRun) error { o.State = state; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := q.PageNotes().NotePage(ctx, job.ID, "S1", 0, 0, []uint64{1, 2}); err != nil {
			t.Fatal(err)
		}
		setCell(t, q, "running.song", job.ID)
	}
	kept := createJob(t, q, "J2") // else the blocks of all that is removed are deleted
	for acked := 0; acked < 2; {
		messages := fetch(t, c)
		mustAck(t, messages...)
		acked += len(messages)
	}
	mustPublish(t, q, record("S1", "A3"))
	if err := q.DeadLetters().Clear(ctx, "song", "S1", "A1", 0, func(core.DeadLetter) bool { return true }); err != nil {
		t.Fatal(err)
	}
	_, js := raw(t, q)
	letters, err := js.Stream(ctx, "DEAD_LETTERS")
	if err == nil { // as when the time to live of its tombstone has passed
		err = letters.Purge(ctx, jetstream.WithPurgeSubject(subjects.OfRecordDeadLetter("song", "S1", "A1")))
	}
	if err == nil {
		err = q.Jobs().PruneOlder(ctx, 1, jobs.Ages{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Jobs().Get(ctx, kept.ID); err != nil {
		t.Fatal(err)
	}
	before := storedBySubject(t, q)
	after := storedBySubject(t, s.killed(t).connect(t, queue.Config{}))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("messages by subject before the server was killed (-) and after (+):\n%s", diff)
	}
	for subject, n := range before {
		if n != 1 {
			t.Errorf("%s has %d messages", subject, n)
		}
	}
}

func setCell(t *testing.T, q *queue.Queue, name, value string) {
	t.Helper()
	_, revision, err := q.Cells().Cell(t.Context(), name)
	if err == nil {
		err = q.Cells().SetCell(t.Context(), name, value, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStreamOfEarlierVersion: a Request that was replaced and whose replacement was acknowledged comes back when the server is killed,
// below the ack floor, if the stream has the limit of one message for each subject that earlier versions set. It is delivered all the same,
// as of its version, and then gone.
func TestStreamOfEarlierVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		_, js := raw(t, q)
		stream, err := js.Stream(t.Context(), "REQUESTS")
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.MaxMsgsPerSubject, cfg.AllowRollup = 1, false
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		old := record("S1", "A1")
		old.ID, old.Kind, old.Cause = "change", core.KindRemove, core.CauseOutbox // the server knows its id
		var storedAt time.Time
		for _, r := range []core.Request{old, record("S1", "A1"), record("S1", "A2")} {
			subject, err := subjects.OfRequest(r)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), subject, data, jetstream.WithMsgID(r.ID)); err != nil {
				t.Fatal(err)
			}
			if storedAt.IsZero() {
				m, err := stream.GetLastMsgForSubject(t.Context(), subject)
				if err != nil {
					t.Fatal(err)
				}
				storedAt = m.Time
			}
		}
		messages, err := c.Fetch(t.Context(), 1, 0, time.Second)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		mustAck(t, messages...)
		closeQueue(t, q)

		q = s.killed(t).connect(t, queue.Config{})
		if n := len(storedBySubject(t, q)); n != 2 {
			t.Fatalf("%d messages after the server was killed: nothing came back", n)
		}
		c = mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{AckWait: time.Second}) // the server may not have stored the last ack
		var returned core.Message
		eventually(t, "the request that came back", func() bool {
			if err := q.PublishUndelivered(t.Context()); err != nil {
				t.Fatal(err)
			}
			messages, err := c.Fetch(t.Context(), 10, 0, 100*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range messages {
				mustAck(t, m)
				if m.Request().RecordID == "A1" {
					returned = m
				}
			}
			return returned != nil
		})
		if returned.Request().Kind != core.KindRemove || returned.Version() != core.Version(storedAt.UnixNano()) {
			t.Errorf("the returned request is %s as of %d, want the removal as of %d", returned.Request().Kind, returned.Version(), storedAt.UnixNano())
		}
		eventually(t, "an empty queue", func() bool { return len(storedBySubject(t, q)) == 0 })
	})
}

// TestDeadLettersOfEarlierVersion: the stream of an earlier version is renewed at the first start, so that dead letters that were removed do
// not come back later; the others stay as they are, and are not new.
func TestDeadLettersOfEarlierVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		_, js := raw(t, q)
		stream, err := js.Stream(t.Context(), "DEAD_LETTERS")
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		cfg.MaxMsgsPerSubject, cfg.AllowRollup = 1, false
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			for _, id := range []string{"A1", "A2"} { // as the earlier version stored them
				l := letter("S1", id, core.ReasonRejected)
				l.Attempts = n
				data, err := json.Marshal(l)
				if err == nil {
					_, err = js.Publish(t.Context(), subjects.OfDeadLetter(l), data)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		removed := subjects.OfDeadLetter(letter("S1", "A1", core.ReasonRejected))
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(removed)); err != nil {
			t.Fatal(err)
		}
		position, err := q.DeadLetters().LastSequence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		closeQueue(t, q)
		if earlier := s.killed(t); len(lettersOf(t, earlier)) != 2 {
			t.Fatal("the removed dead letter does not come back where the limit stays")
		}

		q = s.connect(t, queue.Config{})
		letters := list(t, q, "", "")
		if len(letters) != 1 || letters[0].RecordID != "A2" || letters[0].Attempts != 2 {
			t.Fatalf("the dead letters are %v", letters)
		}
		found, _ := changes(t, q, position)
		for _, c := range found {
			if c.First > position {
				t.Errorf("the dead letter counts as new: %+v", c)
			}
		}
		if left := lettersOf(t, s.killed(t)); len(left) != 1 {
			t.Errorf("dead letters after the server was killed: %v", left)
		}
		_, js = raw(t, q)
		if _, err := js.Stream(t.Context(), "DEAD_LETTERS_COPY"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("the copy of the stream stays: %v", err)
		}
	})
}

// lettersOf returns the subjects of the dead letters that a server has, without setting up its streams.
func lettersOf(t *testing.T, s *server) []string {
	t.Helper()
	opts := []nats.Option{nats.InProcessServer(s)}
	if s.url != "" {
		opts = nil
	}
	nc, err := nats.Connect(s.url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "DEAD_LETTERS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(subjects.DeadPrefix+">"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(info.State.Subjects))
}

// TestStormOfOneRecord: however many Requests for one record are published, the queue has few of them.
func TestStormOfOneRecord(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		c := mustConsumer(t, q, core.ClassRecords, queue.ConsumerConfig{})
		mustConsumer(t, q, core.ClassBatches, queue.ConsumerConfig{})
		mustPublish(t, q, record("S1", "A1"))
		fetch(t, c) // one is in flight all the time
		_, js := raw(t, q)
		var most atomic.Int64
		var publishing, counting sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		counting.Go(func() {
			for ctx.Err() == nil {
				most.Store(max(most.Load(), int64(held(t, js, "REQUESTS"))))
			}
		})
		for range 16 {
			publishing.Go(func() {
				for i := range 20 {
					r := record("S1", "A1")
					if err := q.Publish(t.Context(), r); err != nil {
						t.Error(err)
					}
					if errs := q.PublishAll(t.Context(), []core.Request{r, r, r, r, r, r, r, r, r}[:1+i%9]); errs != nil {
						t.Error(errs)
					}
				}
			})
		}
		publishing.Wait()
		end()
		counting.Wait()
		if n := most.Load(); n > 4 {
			t.Errorf("up to %d messages for one record", n)
		}
	})
}

// TestRepeatedPublish: a Request that is sent again, as the outbox does after a crash, does not replace a newer removal.
func TestRepeatedPublish(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		q := s.connect(t, queue.Config{})
		now := time.Now().UTC()
		removal := record("S1", "A1")
		removal.Kind, removal.ReceivedAt = core.KindRemove, now
		mustPublish(t, q, removal)
		again := record("S1", "A1")
		again.Cause, again.ReceivedAt = core.CauseOutbox, now.Add(-time.Minute)
		mustPublish(t, q, again)
		pending := func() core.Request {
			p, err := q.PendingRecord(t.Context(), "song", "S1", "A1")
			if err != nil || p.Request == nil {
				t.Fatalf("no pending request: %v", err)
			}
			return *p.Request
		}
		if kind := pending().Kind; kind != core.KindRemove {
			t.Errorf("an older request of the outbox replaced the removal by %q", kind)
		}
		later := again
		later.ID, later.ReceivedAt = "later", now.Add(time.Second)
		mustPublish(t, q, later)
		if kind := pending().Kind; kind != core.KindIndex {
			t.Errorf("a later request of the outbox did not replace the removal: %q", kind)
		}
	})
}
