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

	"tutti/internal/config"
	"tutti/internal/core"
)

const (
	// addressPrefix comes before the address that a child of the bench prints.
	addressPrefix = "address "
	// childStart and childEnd are how long a process may take to begin and to end.
	childStart = 2 * time.Minute
	childEnd   = 15 * time.Second
)

// untilClosed waits until in ends, as a child's standard input does with its parent.
func untilClosed(in io.Reader) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("waiting for the parent: %w", err)
	}
	return nil
}

// child is this program as a process of its own.
type child struct {
	url   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// said takes the first address that the child tells; it is closed when its output ends.
	said chan string
	read sync.WaitGroup
	once sync.Once
	last string // the child's last line of output, valid after read
}

// childSpec says what a child does.
type childSpec struct {
	args []string
	env  []string
	// signalled: it ends by an interrupt, not by the end of its standard input.
	signalled bool
	// address finds the address in a line of the child's standard output or error output, "" for none.
	address func(line string) string
}

// configures reports whether a variable of the environment would change what a server does.
func configures(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "TUTTI_") || strings.HasPrefix(name, "MAESTRO_") || slices.Contains(config.ArrangerVariables(), name)
}

// printed is the address of a child that prints it with addressPrefix.
func printed(line string) string {
	url, ok := strings.CutPrefix(line, addressPrefix)
	if !ok {
		return ""
	}
	return url
}

// logged is the address in the JSON log of a server.
func logged(line string) string {
	if !strings.HasPrefix(line, "{") {
		return ""
	}
	return gjson.Get(line, "url").String()
}

// start starts a child and waits for its address. It must be stopped.
func (b *bench) start(ctx context.Context, spec childSpec) (*child, error) {
	args := append(append([]string(nil), b.Command[1:]...), spec.args...)
	c := &child{cmd: exec.CommandContext(ctx, b.Command[0], args...), said: make(chan string, 1)}
	c.cmd.Env = append(slices.DeleteFunc(os.Environ(), configures), spec.env...)
	c.cmd.WaitDelay = childEnd
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(os.Interrupt) }
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "making a pipe", err)
	}
	c.cmd.Stdout, c.cmd.Stderr = writer, writer
	if !spec.signalled {
		if c.stdin, err = c.cmd.StdinPipe(); err != nil {
			return nil, core.WrapError(core.CodeInternal, "making a pipe", err)
		}
	}
	err = c.cmd.Start()
	_ = writer.Close() // the child has its own
	if err != nil {
		_ = reader.Close()
		return nil, core.WrapError(core.CodeInternal, "starting "+spec.args[0], err)
	}
	c.read.Go(func() { c.listen(reader, spec.address) })
	if c.url, err = c.address(ctx); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting %s (it said: %s): %w", strings.Join(spec.args, " "), c.last, err)
	}
	return c, nil
}

// listen reads the child's output to its end.
func (c *child) listen(output io.ReadCloser, address func(string) string) {
	defer output.Close()
	defer close(c.said)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.last = lines.Text()
		if url := address(c.last); url != "" {
			c.said <- url
			break
		}
	}
	_, _ = io.Copy(io.Discard, output) // what is measured does not share the processor with a reader of its log
}

func (c *child) address(ctx context.Context) (string, error) {
	late := time.NewTimer(childStart)
	defer late.Stop()
	select {
	case url, ok := <-c.said:
		if !ok {
			return "", core.NewError(core.CodeInternal, "the process ended at once")
		}
		return url, nil
	case <-late.C:
		return "", core.NewError(core.CodeInternal, "the process does not say its address")
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
		_ = c.cmd.Wait() // how it ended is not measured
	})
}

// startUpstream starts a Song server of generated analyses as a process of its own.
func (b *bench) startUpstream(ctx context.Context, studies, records int) (*child, error) {
	b.say("starting a repository of %d analyses in %d studies", records, studies)
	return b.start(ctx, childSpec{address: printed, args: []string{
		benchCommand, UpstreamCommand, "--studies", strconv.Itoa(studies), "--records", strconv.Itoa(records),
	}})
}

// startSink starts an engine that answers at once, or after delay, as a process of its own.
func (b *bench) startSink(ctx context.Context, delay time.Duration) (*child, error) {
	return b.start(ctx, childSpec{address: printed, args: []string{
		benchCommand, SinkCommand, "--delay", delay.String(),
	}})
}

// startServe starts the server as a process of its own, on a repository and an engine.
func (b *bench) startServe(ctx context.Context, upstreamURL, engineURL, alias string) (*child, error) {
	dir, err := b.newFolder()
	if err != nil {
		return nil, err
	}
	env := append(settings(dir, upstreamURL, engineURL, alias), config.Variable("log.format")+"=json")
	return b.start(ctx, childSpec{address: logged, signalled: true, args: []string{serveCommand}, env: env})
}
