package memory_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/app"
	"tutti/internal/config"
)

const (
	// childVariable is the variable with the configuration of a child process: this test program, run as a tutti.
	childVariable = "MEMORY_CHILD_CONFIGURATION"
	// groupVariable is the variable with the folder of a cgroup for the child, empty of other processes. Without it, the memory of the
	// process is read.
	groupVariable = "TUTTI_TEST_MEMORY_CGROUP"
)

// TestMain runs the tests, or, in a child process, a tutti.
func TestMain(m *testing.M) {
	if yaml := os.Getenv(childVariable); yaml != "" {
		if err := errors.Join(joinGroup(os.Getenv(groupVariable)), serveChild(yaml)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// serveChild runs a tutti until standard input ends, as it does with the parent.
func serveChild(yaml string) error {
	cfg, err := config.Parse([]byte(yaml), nil)
	if err != nil {
		return err
	}
	a, err := app.New(cfg, app.Options{Logger: slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	if err := a.Start(context.Background()); err != nil {
		return err
	}
	fmt.Println(a.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return a.Stop(context.Background())
}

// child is a tutti in a process of its own, whose memory is read until it ends.
type child struct {
	url   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
	polls sync.WaitGroup

	mu   sync.Mutex
	peak int64
	err  error
}

// pollInterval is the interval at which the memory of a child is read.
const pollInterval = 5 * time.Millisecond

// startChild starts a child, which is stopped at the end of the test at the latest.
func startChild(t *testing.T, yaml string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childVariable+"="+yaml, "GOGC=100") // the product's, whatever the tests run with
	c.cmd.Stderr = t.Output()
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.stop() })
	c.polls.Go(c.poll)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child ended: %v", c.stop())
	}
	c.url = strings.TrimSpace(line)
	return c
}

// stop ends the child as SIGTERM ends tutti, and waits for its end. Later calls return the same error.
func (c *child) stop() error {
	select {
	case <-c.ended:
	default:
		close(c.ended)
		c.polls.Wait()
		c.err = errors.Join(c.err, c.stdin.Close(), c.cmd.Wait())
	}
	return c.err
}

// poll reads the memory of the child until it ends.
func (c *child) poll() {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		now, err := anonymousMemory(c.cmd.Process.Pid)
		c.mu.Lock()
		c.peak = max(c.peak, now)
		c.mu.Unlock()
		if err != nil {
			c.err = err
			return
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return
		}
	}
}

// takePeak returns the highest memory since the last call, in bytes.
func (c *child) takePeak() int64 {
	now, _ := anonymousMemory(c.cmd.Process.Pid) // an error is found by poll
	c.mu.Lock()
	defer c.mu.Unlock()
	peak := max(c.peak, now)
	c.peak = 0
	return peak
}

// joinGroup moves this process into a cgroup, unless its folder is "".
func joinGroup(folder string) error {
	if folder == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte("0"), 0o600)
}

// figure returns the name of the figure that anonymousMemory reads.
func figure() string {
	if folder := os.Getenv(groupVariable); folder != "" {
		return "anonymous memory in memory.stat of the cgroup " + folder
	}
	return "RssAnon of the process"
}

// anonymousMemory returns the memory of a process, or of its cgroup, that is not of files, in bytes: RssAnon (proc(5), status), or anon
// of memory.stat, which is rss in version 1 of cgroups.
func anonymousMemory(pid int) (int64, error) {
	if folder := os.Getenv(groupVariable); folder != "" {
		text, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"anon", "rss"} {
			if n, found := number("\n"+string(text), "\n"+name+" "); found {
				return n, nil
			}
		}
		return 0, errors.New("memory.stat has no anonymous memory")
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	kib, found := number(string(text), "\nRssAnon:")
	if !found { // the process has ended
		return 0, errors.New("the process has no memory")
	}
	return kib << 10, nil
}

// number returns the number after a prefix in a text.
func number(text, prefix string) (int64, bool) {
	_, rest, found := strings.Cut(text, prefix)
	if !found {
		return 0, false
	}
	rest, _, _ = strings.Cut(strings.TrimSpace(rest), "\n")
	n, err := strconv.ParseInt(strings.TrimSuffix(rest, " kB"), 10, 64)
	return n, err == nil
}

// TestFigure reads the anonymous memory of a cgroup of either version, and of a process.
func TestFigure(t *testing.T) {
	for _, stat := range []string{"anon 4096\nfile 8192\nanon_thp 0\n", "cache 8192\nrss 4096\nrss_huge 0\ntotal_rss 9\n"} {
		folder := t.TempDir()
		t.Setenv(groupVariable, folder)
		if err := os.WriteFile(filepath.Join(folder, "memory.stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := anonymousMemory(0); n != 4096 || err != nil || !strings.HasSuffix(figure(), folder) {
			t.Errorf("%q: %d by %s (%v)", stat, n, figure(), err)
		}
		if err := joinGroup(folder); err != nil {
			t.Error(err)
		}
		if pid, err := os.ReadFile(filepath.Join(folder, "cgroup.procs")); string(pid) != "0" || err != nil {
			t.Errorf("%q joins the group (%v)", pid, err)
		}
	}
	t.Setenv(groupVariable, "")
	if runtime.GOOS != "linux" {
		return
	}
	if n, err := anonymousMemory(os.Getpid()); n < 1<<20 || err != nil || figure() != "RssAnon of the process" {
		t.Errorf("%d by %s (%v)", n, figure(), err)
	}
}
