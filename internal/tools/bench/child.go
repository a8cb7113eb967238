package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/setting"
	"tutti/internal/config/foreign"
	"tutti/internal/core"
	"tutti/internal/tools/bench/standin"
)

const (
	// childStart and childEnd bound the time of a process to start and to end.
	childStart = 2 * time.Minute
	childEnd   = 15 * time.Second
)

// child is this program as a separate process.
type child struct {
	url   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// firstAddress receives the first address that the child prints; it is closed when its output ends.
	firstAddress chan string
	read         sync.WaitGroup
	once         sync.Once
	last         string // the child's last line of output, valid after read
}

// childSpec describes a child process.
type childSpec struct {
	command []string
	env     []string
	// signalled is set when it ends on an interrupt instead of the end of its standard input.
	signalled bool
	// address returns the address in a line of the child's standard output or error output, "" for none.
	address func(line string) string
}

// isConfiguration reports whether a variable of the environment would change what a server does.
func isConfiguration(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "TUTTI_") || strings.HasPrefix(name, "MAESTRO_") || slices.Contains(foreign.ArrangerVariables(), name)
}

// printedAddress returns the address in a line that starts with addressPrefix.
func printedAddress(line string) string {
	url, ok := strings.CutPrefix(line, standin.AddressPrefix)
	if !ok {
		return ""
	}
	return url
}

// loggedAddress returns the address in a line of a server's JSON log.
func loggedAddress(line string) string {
	if !strings.HasPrefix(line, "{") {
		return ""
	}
	return gjson.Get(line, "url").String()
}

// start starts a child and waits for its address. The caller must stop it.
func (b *bench) start(ctx context.Context, spec childSpec) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, spec.command[0], spec.command[1:]...), firstAddress: make(chan string, 1)}
	c.cmd.Env = append(slices.DeleteFunc(os.Environ(), isConfiguration), spec.env...)
	c.cmd.WaitDelay = childEnd
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(os.Interrupt) }
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "creating a pipe", err)
	}
	c.cmd.Stdout, c.cmd.Stderr = writer, writer
	if !spec.signalled {
		if c.stdin, err = c.cmd.StdinPipe(); err != nil {
			return nil, core.WrapError(core.CodeInternal, "creating a pipe", err)
		}
	}
	err = c.cmd.Start()
	_ = writer.Close() // the child has its copy
	if err != nil {
		_ = reader.Close()
		return nil, core.WrapError(core.CodeInternal, "starting "+spec.command[0], err)
	}
	c.read.Go(func() { c.listen(reader, spec.address) })
	if c.url, err = c.address(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting %s (last output: %s): %w", strings.Join(spec.command, " "), c.last, err)
	}
	return c, nil
}

// listen reads the child's output to its end.
func (c *child) listen(output io.ReadCloser, address func(string) string) {
	defer output.Close()
	defer close(c.firstAddress)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.last = lines.Text()
		if url := address(c.last); url != "" {
			c.firstAddress <- url
			break
		}
	}
	_, _ = io.Copy(io.Discard, output) // the log must not use CPU during the measurement
}

func (c *child) address(ctx context.Context) (string, error) {
	late := time.NewTimer(childStart)
	defer late.Stop()
	select {
	case url, ok := <-c.firstAddress:
		if !ok {
			return "", core.NewError(core.CodeInternal, "the process exited at once")
		}
		return url, nil
	case <-late.C:
		return "", core.NewError(core.CodeInternal, "the process did not print its address")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stop ends the child and waits for it; it may be called again.
func (c *child) stop() {
	c.once.Do(func() {
		if c.stdin != nil {
			_ = c.stdin.Close()
		} else {
			_ = c.cmd.Process.Signal(os.Interrupt)
		}
		kill := time.AfterFunc(childEnd, func() { _ = c.cmd.Process.Kill() })
		defer kill.Stop()
		c.read.Wait()
		_ = c.cmd.Wait() // its exit status does not matter
	})
}

// startUpstream starts a Song server of generated analyses as a separate process.
func (b *bench) startUpstream(ctx context.Context, studies, records int) (*child, error) {
	b.say("starting a repository of %d analyses in %d studies", records, studies)
	return b.start(ctx, childSpec{address: printedAddress, command: slices.Concat(b.Self, []string{
		UpstreamCommand, "--studies", strconv.Itoa(studies), "--records", strconv.Itoa(records),
	})})
}

// startSink starts an engine that responds at once, or after delay, as a separate process.
func (b *bench) startSink(ctx context.Context, delay time.Duration) (*child, error) {
	return b.start(ctx, childSpec{address: printedAddress, command: slices.Concat(b.Self, []string{SinkCommand, "--delay", delay.String()})})
}

// startServe starts the server as a separate process, with a repository, an engine and more variables.
func (b *bench) startServe(ctx context.Context, upstreamURL, engineURL, alias string, more ...string) (*child, error) {
	dir, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	return b.startServeIn(ctx, dir, upstreamURL, engineURL, alias, more...)
}

// startServeIn is startServe with a data folder.
func (b *bench) startServeIn(ctx context.Context, dir, upstreamURL, engineURL, alias string, more ...string) (*child, error) {
	env := append(append(settings(dir, upstreamURL, engineURL, alias), setting.Variable("log.format")+"=json"), more...)
	return b.start(ctx, childSpec{address: loggedAddress, signalled: true, command: b.Server, env: env})
}
