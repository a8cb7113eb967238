package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/app"
	"tutti/internal/app/backup"
	"tutti/internal/app/storage"
	"tutti/internal/config"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// childVariable is the variable with the configuration of a child process: this test program, run as a tutti.
const childVariable = "E2E_CHILD_CONFIGURATION"

// givesUpSoonVariable makes a child give up Requests sooner.
const givesUpSoonVariable = "E2E_CHILD_HASTY"

// ackWaitVariable is the variable with a child's Options.AckWait.
const ackWaitVariable = "E2E_CHILD_ACK_WAIT"

// The variables of a child that runs a command instead of a tutti: with the configuration that it moves to, the folder that it writes a backup
// to, and the one that it restores from.
const (
	moveVariable    = "E2E_CHILD_MOVE_TO"
	backupVariable  = "E2E_CHILD_BACKUP_TO"
	restoreVariable = "E2E_CHILD_RESTORE_FROM"
)

// natsVariable is the variable with the folder of a child that is a NATS server, instead of running a tutti, and natsListenVariable that with
// its address.
const (
	natsVariable       = "E2E_CHILD_NATS"
	natsListenVariable = "E2E_CHILD_NATS_LISTEN"
)

// natsCluster is three NATS servers that tests share.
var natsCluster queuetest.Shared

// soonOptions are the Options of a child that gives up Requests sooner.
var soonOptions = app.Options{AckWait: 300 * time.Millisecond, MaxDeliver: 8}

// TestMain runs the tests, or, in a child process, a tutti. Goroutines that outlive the tests fail them.
func TestMain(m *testing.M) {
	if yaml := os.Getenv(childVariable); yaml != "" {
		if err := serveChild(yaml); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(natsVariable); dir != "" {
		if err := serveNATS(dir, os.Getenv(natsListenVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Parallel()
	goleak.VerifyTestMain(natsCluster.Main(m), queuetest.Outlive()...)
}

// serveChild runs a tutti until standard input ends, as it does with the parent, or moves one.
func serveChild(yaml string) error {
	cfg, err := config.Parse([]byte(yaml), nil)
	if err != nil {
		return err
	}
	if command := childCommand(); command != nil {
		fmt.Println("begun")
		return command(cfg)
	}
	opts := app.Options{}
	if os.Getenv(givesUpSoonVariable) != "" {
		opts = soonOptions
	}
	if text := os.Getenv(ackWaitVariable); text != "" {
		if opts.AckWait, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	opts.Logger = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	a, err := app.New(cfg, opts)
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

// childCommand returns the command of a child that is not a tutti, else nil.
func childCommand() func(config.Config) error {
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	if text := os.Getenv(moveVariable); text != "" {
		return func(cfg config.Config) error {
			to, err := config.Parse([]byte(text), nil)
			if err == nil {
				_, err = storage.Move(ctx, cfg, to, log, func(string) {})
			}
			return err
		}
	}
	if dir := os.Getenv(backupVariable); dir != "" {
		return func(cfg config.Config) error {
			archive, in := io.Pipe()
			go func() { _ = in.CloseWithError(storage.WriteBackup(ctx, cfg, log, "1.0", in)) }()
			_, err := backup.Unpack(archive, dir)
			return err
		}
	}
	if dir := os.Getenv(restoreVariable); dir != "" {
		return func(cfg config.Config) error {
			_, err := storage.Restore(ctx, cfg, log, dir)
			return err
		}
	}
	return nil
}

// serveNATS runs a NATS server until standard input ends.
func serveNATS(dir, listen string) error {
	server, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Listen: listen})
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Stop(context.Background())
}

// startNATS starts a NATS server in a child and returns its URL. It is killed at the end of the test at the latest.
func startNATS(t *testing.T, dir, listen string) (*child, string) {
	t.Helper()
	c, url, err := startProcess(t, os.Stderr, natsVariable+"="+dir, natsListenVariable+"="+listen)
	if err != nil {
		t.Fatal(err)
	}
	return c, url
}

// child is a tutti, or a NATS server, in a process of its own.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended bool
}

// startChild starts a child on the world's configuration; requests go to it. It is killed at the end of the test at
// the latest.
func (w *world) startChild() *child {
	w.t.Helper()
	c, url, err := w.tryChild()
	if err != nil {
		w.t.Fatal(err)
	}
	w.url = url
	return c
}

// tryChild returns the address of a child, or how it failed.
func (w *world) tryChild() (*child, string, error) {
	environ := []string{childVariable + "=" + w.yaml()}
	if w.set.givesUpSoon {
		environ = append(environ, givesUpSoonVariable+"=1")
	}
	if w.set.ackWait != 0 {
		environ = append(environ, ackWaitVariable+"="+w.set.ackWait.String())
	}
	return startProcess(w.t, w.logs, environ...)
}

// startProcess starts this program as a child with more variables, and returns the address that it prints.
func startProcess(t *testing.T, log io.Writer, environ ...string) (*child, string, error) {
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), environ...)
	c.cmd.Stderr = log
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, "", err
	}
	t.Cleanup(c.kill)
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		c.ended = true
		return nil, "", fmt.Errorf("the child ended: %w", c.cmd.Wait())
	}
	return c, strings.TrimSpace(url), nil
}

// kill ends the child by SIGKILL, in whatever it does, and waits for its end.
func (c *child) kill() {
	if c.ended {
		return
	}
	c.ended = true
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // says that it was killed
	_ = c.stdin.Close()
}

// stop ends the child as SIGTERM ends tutti, and waits for its end.
func (c *child) stop() error {
	c.ended = true
	return errors.Join(c.stdin.Close(), c.cmd.Wait())
}

// tryPost posts and reports whether the answer was 202.
func (w *world) tryPost(path string) bool {
	a, err := w.request(http.MethodPost, path)
	return err == nil && a.status == http.StatusAccepted
}
