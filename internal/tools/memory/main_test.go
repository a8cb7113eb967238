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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/app"
	"tutti/internal/config"
)

// childVariable is the variable with the configuration of a child process: this test program, run as a tutti.
const childVariable = "MEMORY_CHILD_CONFIGURATION"

// TestMain runs the tests, or, in a child process, a tutti.
func TestMain(m *testing.M) {
	if yaml := os.Getenv(childVariable); yaml != "" {
		if err := serveChild(yaml); err != nil {
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
	c.cmd.Env = append(os.Environ(), childVariable+"="+yaml)
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

// anonymousMemory returns the resident memory of a process that is not of files, in bytes (proc(5), status).
func anonymousMemory(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "\nRssAnon:")
	if !found { // the process has ended
		return 0, errors.New("the process has no memory")
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
	return kib << 10, err
}
