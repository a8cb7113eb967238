package cells_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/queue/cells"
	"tutti/internal/queue/embedded"
	"tutti/internal/queue/natsconn"
	"tutti/internal/tools/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTwo opens the bucket of a server by two connections. The server is in process, or the program that TUTTI_TEST_NATS_SERVER names.
func openTwo(t *testing.T) (*cells.Bucket, *cells.Bucket) {
	t.Helper()
	cfg := natsconn.ConnConfig{
		Streams: []jetstream.StreamConfig{cells.StreamConfig(1)}, StartTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	}
	if program := os.Getenv("TUTTI_TEST_NATS_SERVER"); program != "" {
		url, stop := queuetest.RunProgram(t, program, t.TempDir(), "127.0.0.1:0")
		t.Cleanup(stop)
		cfg.URL = url
	} else {
		server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		cfg.Server = server
	}
	var buckets [2]*cells.Bucket
	for i := range buckets {
		conn, err := natsconn.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := conn.Disconnect(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		streams, err := conn.SetUp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if buckets[i], err = cells.Open(t.Context(), conn, streams[cells.StreamName]); err != nil {
			t.Fatal(err)
		}
	}
	return buckets[0], buckets[1]
}

func wantCode(t *testing.T, err error, code core.Code) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Fatalf("got code %q (%v), want %q", core.CodeOf(err), err, code)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	first, second := openTwo(t)
	a, b := first.Cells(), second.Cells()
	const name = "running/song/S1 ü"
	state := func(want string) uint64 {
		t.Helper()
		id, revision, err := b.Cell(t.Context(), name)
		if err != nil || id != want || (revision == 0) != (want == "") {
			t.Fatalf("cell holds %q at %d, %v; want %q", id, revision, err, want)
		}
		return revision
	}
	set := func(id string, revision uint64, code core.Code) {
		t.Helper()
		wantCode(t, a.SetCell(t.Context(), name, id, revision), code)
	}
	for range 2 {
		state("")
		set("", 0, "")
		set("one", 7, core.CodeConflict)
		set("one", 0, "")
		set("two", 0, core.CodeConflict)
		revision := state("one")
		set("two", revision, "")
		set("three", revision, core.CodeConflict)
		set("", revision, core.CodeConflict)
		set("", state("two"), "")
	}
	state("")
}

func TestCellHasOneWinner(t *testing.T) {
	t.Parallel()
	first, second := openTwo(t)
	const rivals = 10
	results := make(chan error, rivals)
	for i := range rivals {
		go func() {
			results <- []*cells.Bucket{first, second}[i%2].Cells().SetCell(context.WithoutCancel(t.Context()), "cell", fmt.Sprint(i), 0)
		}()
	}
	won := 0
	for range rivals {
		if err := <-results; err == nil {
			won++
		} else if core.CodeOf(err) != core.CodeConflict {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d winners", won)
	}
}

// TestJobsAge: a job is kept for 90 days after its last change.
func TestJobsAge(t *testing.T) {
	t.Parallel()
	b, _ := openTwo(t)
	status, err := b.KV.Status(t.Context())
	if err != nil || status.TTL() != 90*24*time.Hour {
		t.Errorf("kept for %v, %v", status.TTL(), err)
	}
}

func TestNotedPages(t *testing.T) {
	t.Parallel()
	b, _ := openTwo(t)
	notes := b.PageNotes()
	note := func(organization string, reading, page int, ids ...uint64) {
		t.Helper()
		if err := notes.NotePage(t.Context(), "job", organization, reading, page, ids); err != nil {
			t.Fatal(err)
		}
	}
	want := func(organization string, reading, last, n int) {
		t.Helper()
		got, err := notes.NotedIDs(t.Context(), "job", organization, reading, last)
		if err != nil || len(got) != n || !slices.IsSorted(got) {
			t.Errorf("%s, reading %d up to %d: %d, %v, want %d ids", organization, reading, last, got, err, n)
		}
	}
	note("S.1", 0, 0, 1, 2, 3)
	note("S.1", 0, 1, 3, 4)
	note("S.1", 0, 10, 99)
	note("S.1", 1, 0, 5)
	note("S", 0, 0, 6)
	note("S.1", 0, 1, 3, 4, 1<<63)
	want("S.1", 0, 1, 5)
	want("S.1", 0, 10, 6)
	want("S.1", 1, 3, 1)
	want("S", 0, 0, 1)
	want("none", 0, 3, 0)
	before, err := notes.IDsOnEarlierPages(t.Context(), "job", "S.1", 0, 10, []uint64{2, 4, 5, 1 << 63, 99})
	if wanted := (map[uint64]struct{}{2: {}, 4: {}, 1 << 63: {}}); err != nil || !maps.Equal(before, wanted) {
		t.Errorf("noted before page 10: %v, %v, want %v", before, err, wanted)
	}
	late := func(organization string, page, epoch int, ids ...string) {
		t.Helper()
		if err := notes.NoteRequestedIDs(t.Context(), "job", organization, page, epoch, ids); err != nil {
			t.Fatal(err)
		}
	}
	wantLate := func(organization string, pages map[int]int, ids ...string) {
		t.Helper()
		got, err := notes.RequestedIDs(t.Context(), "job", organization, pages)
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s, pages %v: late records %q, %v, want %q", organization, pages, got, err, ids)
		}
	}
	many := make([]string, 2500)
	for i := range many {
		many[i] = fmt.Sprintf("%05d", i)
	}
	late("S.1", 1, 0, "a", "b.*>\n")
	late("S.1", 1, 1, "b.*>\n", "c")
	late("S.1", 10, 0, "d", "a")
	late("S", 2, 0, many...)
	wantLate("S.1", map[int]int{1: 0, 10: 0}, "a", "b.*>\n", "d")
	wantLate("S.1", map[int]int{1: 1}, "b.*>\n", "c")
	wantLate("S", map[int]int{2: 0}, many...)
	want("S.1", 0, 10, 6)
	invalid := func(reading, page int, ids ...uint64) {
		t.Helper()
		if err := notes.NoteInvalid(t.Context(), "job", "S.1", reading, page, ids); err != nil {
			t.Fatal(err)
		}
	}
	wantInvalid := func(reading, last int, ids ...uint64) {
		t.Helper()
		got, err := notes.NotedInvalid(t.Context(), "job", "S.1", reading, last)
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("reading %d up to %d: invalid %d, %v, want %d", reading, last, got, err, ids)
		}
	}
	invalid(0, 0, 2, 1)
	invalid(0, 1, 3)
	invalid(0, 10, 1<<63, 2)
	invalid(1, 0, 7)
	wantInvalid(0, 9, 1, 2, 3)
	wantInvalid(0, 10, 1, 2, 3, 1<<63)
	invalid(0, 1) // the page was read again, and shows none
	wantInvalid(0, 10, 1, 2, 1<<63)
	wantInvalid(1, 10, 7)
	want("S.1", 0, 10, 6)
	if err := notes.ForgetPages(t.Context(), "job", "S.1"); err != nil {
		t.Fatal(err)
	}
	want("S.1", 0, 10, 0)
	wantInvalid(0, 10)
	wantLate("S.1", map[int]int{1: 0, 10: 0})
	want("S", 0, 0, 1)
}

// TestSweptNotes: what a sweep notes is added to what it had noted, by step, organization and job, until the job's notes are forgotten.
func TestSweptNotes(t *testing.T) {
	t.Parallel()
	b, _ := openTwo(t)
	notes := b.PageNotes()
	many := make([]string, 2500)
	for i := range many {
		many[i] = fmt.Sprintf("%05d", i)
	}
	note := func(job, organization string, step int, ids ...string) {
		t.Helper()
		if err := notes.NoteSwept(t.Context(), job, organization, step, ids); err != nil {
			t.Fatal(err)
		}
	}
	want := func(job, organization string, step int, want map[string][]string) {
		t.Helper()
		got, err := notes.Swept(t.Context(), job, organization, step)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s of %s, step %d: %v %s", job, organization, step, err, diff)
		}
	}
	note("job", "S.1", 0, "b.*>\n", "a")
	note("job", "S.1", 0, "a", "c")
	note("job", "S.1", 1, "d")
	note("job", "S", 0, many...)
	note("job", "S", 0)
	note("job2", "S", 0, "e")
	all := map[string][]string{"S.1": {"a", "b.*>\n", "c"}, "S": many}
	want("job", "", 0, all)
	want("job", "S.1", 0, map[string][]string{"S.1": all["S.1"]})
	want("job", "S.1", 1, map[string][]string{"S.1": {"d"}})
	want("job", "none", 0, map[string][]string{})
	if late, err := notes.RequestedIDs(t.Context(), "job", "S", map[int]int{0: 0}); err != nil || len(late) > 0 {
		t.Errorf("late records %q, %v", late, err)
	}
	if err := notes.ForgetPages(t.Context(), "job", "S.1"); err != nil {
		t.Fatal(err)
	}
	want("job", "", 0, all)
	if err := notes.ForgetPages(t.Context(), "job", ""); err != nil {
		t.Fatal(err)
	}
	want("job", "", 0, map[string][]string{})
	want("job2", "", 0, map[string][]string{"S": {"e"}})
}
