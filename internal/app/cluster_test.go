package app_test

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"tutti/internal/app"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestFullCluster: on three NATS servers, a full queue does not accept failed Requests for a retry. They wait in flight, are retried
// more often than they may be delivered, and none is given up.
func TestFullCluster(t *testing.T) {
	t.Parallel()
	const maxDeliver = 2
	w := startWorld(t, settings{
		queueURL: natsCluster.Account(t), queueReplicas: 3, maxPending: 10, maxDeliver: maxDeliver,
	})
	ids := w.fill("S1", 20)
	full := make(chan struct{})
	w.song.Fail(testkit.Fault{
		Path: regexp.MustCompile("/analysis/"), Release: full, Times: 1 << 30, Status: http.StatusInternalServerError,
	})
	accepted := 0
	for w.tryPost(recordPath("S1", ids[accepted])) {
		accepted++
	}
	close(full)
	w.eventually(wait, func() (bool, string) {
		n := w.metric("tutti_documents_total", "outcome", "retried")
		return n >= float64(2*maxDeliver*accepted), fmt.Sprintf("%v tries of %d records", n, accepted)
	})
	w.song.ClearFaults()
	w.awaitOutcomes(core.OutcomeIndexed, accepted)
	if letters := w.deadLettersByRecord(); accepted < 10 || accepted == len(ids) || len(letters) != 0 {
		t.Errorf("%d of %d accepted, dead letters: %+v", accepted, len(ids), letters)
	}
}

// TestClusterSweeps: on three NATS servers, a run removes the documents whose records have gone, and its job succeeds.
func TestClusterSweeps(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{queueURL: natsCluster.Account(t), queueReplicas: 3})
	ids := w.fill("S1", 30)
	w.fill("S2", 3)
	w.fill("S3", 2)
	w.run("", "", core.JobSucceeded)
	w.wantConverged()
	w.song.Delete(ids[0])
	w.song.DropStudy("S3")
	job := w.run("", "", core.JobSucceeded)
	if n := job.Get("totals.removed").Int(); n != 3 {
		t.Errorf("removed %d, want 3: %s", n, job.Raw)
	}
	w.wantConverged()
}

// TestStartTimeout: a start without the queue that is configured fails once server.startTimeout has passed.
func TestStartTimeout(t *testing.T) {
	t.Parallel()
	recovering, tries := recoveringPostgres(t)
	for name, tt := range map[string]struct{ server, want string }{
		"queue":             {`queue: {url: "nats://127.0.0.1:1"}`, "opening the queue: connecting to the queue: no server answers; gave up after 1s"},
		"store":             {`store: {url: "postgres://u@127.0.0.1:1/d?sslmode=disable"}`, "opening the store: the store is not available; gave up after 1s"},
		"store that starts": {`store: {url: "postgres://u@` + recovering + `/d?sslmode=disable"}`, "opening the store: PostgreSQL is starting, stopping or recovering; gave up after 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := config.Parse([]byte("server: {listen: '127.0.0.1:0', startTimeout: 1s}\n"+tt.server+"\ndataDir: "+t.TempDir()), nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := app.New(cfg, app.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if n := tries.Load(); n < 2 {
		t.Errorf("tried to connect %d times", n)
	}
}

// recoveringPostgres is a PostgreSQL that answers each attempt to connect as one that recovers (SQLSTATE 57P03), and counts them.
func recoveringPostgres(t *testing.T) (address string, tries *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tries = new(atomic.Int64)
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tries.Add(1)
			server := pgproto3.NewBackend(conn, conn)
			if _, err := server.ReceiveStartupMessage(); err == nil {
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P03", Message: "the database system is not yet accepting connections"})
				_ = server.Flush()
			}
			_ = conn.Close()
		}
	})
	return l.Addr().String(), tries
}
