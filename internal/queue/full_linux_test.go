package queue_test

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
)

// fullDir is the environment variable that makes TestFullDisk run as the child with a limit of file sizes; its value is the data
// directory.
const fullDir = "TUTTI_TEST_FULL_DIR"

// TestFullDisk simulates a full disk with RLIMIT_FSIZE in a child process. While it is full, publishes fail at once, Ready returns an
// error and the server is not restarted. Once there is space it recovers by itself, and no acknowledged Request is lost.
func TestFullDisk(t *testing.T) {
	inChild(t, fillDisk)
}

// inChild runs the test in a child process, whose limit of the size of files is its own, with a folder.
func inChild(t *testing.T, run func(t *testing.T, dir string)) {
	t.Helper()
	if dir := os.Getenv(fullDir); dir != "" {
		run(t, dir)
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), fullDir+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fillDisk(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	q := startServer(t, dir, "").connect(t, queue.Config{Metrics: queue.NewMetrics(prometheus.NewRegistry())})
	free := limitFiles(t, 200<<10)
	var stored []string
	publish := func(name string) error {
		r := record("S1", name)
		r.Traceparent = strings.Repeat("x", 8<<10)
		err := q.Publish(t.Context(), r)
		if err == nil {
			stored = append(stored, name)
		}
		return err
	}
	for publish(numbered(len(stored))) == nil {
	}
	eventually(t, "a queue that is not ready", func() bool { return q.Ready(t.Context()) != nil })
	wantCode(t, q.Ready(t.Context()), core.CodeUnavailable)
	const message = "the embedded queue cannot write to the stream " + queue.StreamRequests
	if err := q.Ready(t.Context()); !strings.HasSuffix(core.DisplayOf(err), message+"; check the space on its disk; it continues by itself") ||
		strings.Count(err.Error(), message) != 1 {
		t.Errorf("not ready: %v; %s", err, core.HintOf(err))
	}
	// Writes that wait for an answer would take longer than the test may.
	for range 1000 {
		err := publish("refused")
		if core.CodeOf(err) != core.CodeUnavailable || core.RetryAfterOf(err) <= 0 {
			t.Fatalf("a publish on the full disk gave %v", err)
		}
	}
	if n := testutil.ToFloat64(q.Restarts()); n != 0 {
		t.Errorf("%v restarts without room", n)
	}
	free()
	eventually(t, "a queue that is ready", func() bool { return q.Ready(t.Context()) == nil })
	if n := testutil.ToFloat64(q.Restarts()); n != 1 {
		t.Errorf("%v restarts with room again", n)
	}
	if err := publish("afterwards"); err != nil {
		t.Fatal(err)
	}
	pending, err := q.PendingRecords(t.Context(), "song", "S1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stored {
		if _, ok := pending[name]; !ok {
			t.Errorf("the request %s is lost", name)
		}
	}
}

// TestFrozenStream: a stream of an external server that had an I/O error is named by Ready, the log and publishes, with the server to restart,
// also once the disk takes writes again. After that restart everything that was acknowledged is there.
func TestFrozenStream(t *testing.T) {
	inChild(t, freezeStream)
}

func freezeStream(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	s := queuetest.Serve(t, dir, "")
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	warned := make(chan string, 1)
	q, err := queue.Connect(t.Context(), queue.Config{URL: s.ClientURL(), Logger: onLine(func(line string) {
		if strings.Contains(line, "queue cannot store messages") {
			select {
			case warned <- line:
			default:
			}
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeQueue(t, q) })
	free := limitFiles(t, 200<<10)
	r := record("S1", "")
	r.Traceparent = strings.Repeat("x", 8<<10)
	stored, failed := 0, error(nil)
	for failed == nil {
		r.RecordID = numbered(stored)
		if failed = q.Publish(t.Context(), r); failed == nil {
			stored++
		}
	}
	free()
	const message = "nats-server nats-1 answers, but did not store a message within 5s in " + queue.StreamRequests
	eventually(t, "the stream is named", func() bool { return strings.Contains(core.DisplayOf(q.Ready(t.Context())), message) })
	for what, text := range map[string]string{
		"ready": core.DisplayOf(q.Ready(t.Context())), "a publish": core.DisplayOf(q.Publish(t.Context(), r)), "the log": <-warned,
	} {
		if !strings.Contains(text, message) || !strings.Contains(text, "restart nats-server nats-1;") {
			t.Errorf("%s: %s", what, text)
		}
	}
	reports, unread := queue.Monitor(t.Context(), queue.Config{MonitoringURL: monitoring(s)})
	if len(unread) > 0 || len(reports) != 1 || len(reports[0].Frozen) != 1 || !strings.Contains(reports[0].Frozen[0], queue.StreamRequests) {
		t.Errorf("monitoring: %+v, %v", reports, unread)
	}
	servers, err := queue.Probe(t.Context(), queue.Config{URL: s.ClientURL()})
	if err != nil || len(servers) != 1 || !strings.Contains(core.DisplayOf(servers[0].Unstored), message) {
		t.Errorf("a probe: %+v, %v", servers, err)
	}
	restarted := make(chan string, 1)
	second, err := queue.Connect(t.Context(), queue.Config{URL: s.ClientURL(), Logger: onLine(func(line string) {
		if strings.Contains(line, message) {
			select {
			case restarted <- line:
			default:
			}
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if line := <-restarted; !strings.Contains(line, "restart nats-server nats-1;") {
		t.Errorf("the start of another process: %s", line)
	}
	closeQueue(t, second)
	s.Shutdown()
	s.WaitForShutdown()
	queuetest.Serve(t, dir, "port: "+port)
	eventually(t, "a queue that is ready", func() bool { return q.Ready(t.Context()) == nil })
	pending, err := q.PendingRecords(t.Context(), "song", "S1")
	if err != nil || len(pending) < stored {
		t.Errorf("%d of %d requests, %v", len(pending), stored, err)
	}
}

// limitFiles keeps this process's files from growing beyond a size until free is called.
func limitFiles(t *testing.T, size uint64) (free func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: size, Max: was.Max})
	return func() { set(was) }
}
