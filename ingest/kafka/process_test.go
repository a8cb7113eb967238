package kafka_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/ingest/kafka"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// childVariable is the variable with the configuration of a child process: this test program, run as a reader.
const childVariable = "KAFKA_TEST_CHILD"

// TestMain runs the tests, or, in a child process, a reader.
func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := serveChild([]byte(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Parallel()
	goleak.VerifyTestMain(m)
}

// serveChild prints what it reads, a message to a line, until standard input ends, as it does with the parent.
func serveChild(text []byte) error {
	var cfg kafka.Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return err
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	r, err := kafka.New(cfg, handlerFunc(func(_ context.Context, messages []core.TopicMessage) error {
		for _, m := range messages {
			if _, err := fmt.Printf("%s\n", m.Value); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return err
	}
	if err := r.Start(context.Background()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return r.Stop(context.Background())
}

// process is a reader in a process of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines sync.WaitGroup
	once  sync.Once
}

// startProcess starts a reader with the settings of production, but for those given, and collects what it reads.
func (b broker) startProcess(t *testing.T, h *handler, sessionTimeout time.Duration) *process {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Connection": map[string]any{"Brokers": b.addresses}, "Topic": b.topic, "Group": b.group, "SessionTimeout": sessionTimeout})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	p.lines.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			_ = h.Handle(context.Background(), []core.TopicMessage{{Value: slices.Clone(lines.Bytes())}})
		}
	})
	return p
}

// kill ends the process by SIGKILL.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		p.lines.Wait()
		_ = p.cmd.Wait() // says that it was killed
		_ = p.stdin.Close()
	})
}

// stop ends the process as SIGTERM ends tutti.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.once.Do(func() {
		_ = p.stdin.Close()
		p.lines.Wait()
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// takeover: what a process that ends has not read is read by others, or by itself after its restart, soon after it was killed, and at
// once after it was stopped.
func takeover(t *testing.T, fresh func(t *testing.T, partitions int32) broker) {
	const never = 5 * time.Minute // longer than the test waits
	for _, tt := range []struct {
		name           string
		processes      int
		sessionTimeout time.Duration
		end            func(*process, *testing.T)
	}{
		{"the only process is killed and restarted", 1, 0, func(p *process, _ *testing.T) { p.kill() }},
		{"one of three processes is killed", 3, 0, func(p *process, _ *testing.T) { p.kill() }},
		{"one of three processes is stopped", 3, never, (*process).stop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, h := fresh(t, 6), &handler{}
			var processes []*process
			for range tt.processes {
				processes = append(processes, b.startProcess(t, h, tt.sessionTimeout))
			}
			owners := func(n int) func() bool { return func() bool { return b.members(t) == n } }
			eventually(t, "a share of each", owners(tt.processes))
			want := b.produce(t, 6, numbered("before", 60)...)
			eventually(t, "the messages before", func() bool { return h.holds(want) })
			tt.end(processes[0], t)
			ended := time.Now()
			want = b.produce(t, 6, numbered("after", 60)...)
			if tt.processes == 1 {
				b.startProcess(t, h, tt.sessionTimeout)
			}
			eventually(t, "the messages after", func() bool { return h.holds(want) })
			t.Logf("all were read %s later", time.Since(ended).Round(100*time.Millisecond))
		})
	}
}

// members returns the number of members of the group that have partitions while it does not rebalance.
func (b broker) members(t *testing.T) int {
	t.Helper()
	described, err := b.admin.DescribeGroups(within(t), b.group)
	if err != nil || described[b.group].State != "Stable" {
		return 0
	}
	n := 0
	for _, m := range described[b.group].Members {
		if assigned, ok := m.Assigned.AsConsumer(); ok && len(assigned.Topics) > 0 && !strings.HasPrefix(m.ClientID, "kgo") {
			n++
		}
	}
	return n
}
