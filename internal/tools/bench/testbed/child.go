package testbed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
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
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/standin"
)

const (
	// ChildStart and childEnd bound the time of a process to start and to end.
	ChildStart = 2 * time.Minute
	childEnd   = 15 * time.Second
)

// Child is this program as a separate process.
type Child struct {
	URL   string
	Cmd   *exec.Cmd
	stdin io.WriteCloser
	// firstAddress receives the first address that the child prints; it is closed when its output ends.
	firstAddress chan string
	read         sync.WaitGroup
	once         sync.Once
	last         string // the child's last line of output, valid after read
}

// ChildSpec describes a child process.
type ChildSpec struct {
	Command []string
	Env     []string
	// Signalled is set when it ends on an interrupt instead of the end of its standard input.
	Signalled bool
	// Address returns the address in a line of the child's standard output or error output, "" for none.
	Address func(line string) string
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

// LoggedAddress returns the address in a line of a server's JSON log.
func LoggedAddress(line string) string {
	if !strings.HasPrefix(line, "{") {
		return ""
	}
	return gjson.Get(line, "url").String()
}

// Start starts a child and waits for its address. The caller must stop it.
func (b *Testbed) Start(ctx context.Context, spec ChildSpec) (*Child, error) {
	c := &Child{Cmd: exec.CommandContext(ctx, spec.Command[0], spec.Command[1:]...), firstAddress: make(chan string, 1)}
	c.Cmd.Env = append(slices.DeleteFunc(os.Environ(), isConfiguration), spec.Env...)
	c.Cmd.WaitDelay = childEnd
	c.Cmd.Cancel = func() error { return c.Cmd.Process.Signal(os.Interrupt) }
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, core.WrapError(core.CodeInternal, "creating a pipe", err)
	}
	c.Cmd.Stdout, c.Cmd.Stderr = writer, writer
	if !spec.Signalled {
		if c.stdin, err = c.Cmd.StdinPipe(); err != nil {
			return nil, core.WrapError(core.CodeInternal, "creating a pipe", err)
		}
	}
	err = c.Cmd.Start()
	_ = writer.Close() // the child has its copy
	if err != nil {
		_ = reader.Close()
		return nil, core.WrapError(core.CodeInternal, "starting "+spec.Command[0], err)
	}
	c.read.Go(func() { c.listen(reader, spec.Address) })
	if c.URL, err = c.address(ctx); err != nil {
		c.Stop()
		return nil, fmt.Errorf("starting %s (last output: %s): %w", strings.Join(spec.Command, " "), c.last, err)
	}
	return c, nil
}

// listen reads the child's output to its end.
func (c *Child) listen(output io.ReadCloser, address func(string) string) {
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

func (c *Child) address(ctx context.Context) (string, error) {
	late := time.NewTimer(ChildStart)
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

// Stop ends the child and waits for it; it may be called again.
func (c *Child) Stop() {
	c.once.Do(func() {
		if c.stdin != nil {
			_ = c.stdin.Close()
		} else {
			_ = c.Cmd.Process.Signal(os.Interrupt)
		}
		kill := time.AfterFunc(childEnd, func() { _ = c.Cmd.Process.Kill() })
		defer kill.Stop()
		c.read.Wait()
		_ = c.Cmd.Wait() // its exit status does not matter
	})
}

// StartUpstream starts a Song server of generated analyses as a separate process.
func (b *Testbed) StartUpstream(ctx context.Context, studies, records int) (*Child, error) {
	b.Say("starting a repository of %d analyses in %d studies", records, studies)
	return b.Start(ctx, ChildSpec{Address: printedAddress, Command: slices.Concat(b.Self, []string{
		UpstreamCommand, "--studies", strconv.Itoa(studies), "--records", strconv.Itoa(records),
	})})
}

// StartSink starts an engine that responds at once, or after delay, as a separate process.
func (b *Testbed) StartSink(ctx context.Context, delay time.Duration) (*Child, error) {
	return b.Start(ctx, ChildSpec{Address: printedAddress, Command: slices.Concat(b.Self, []string{SinkCommand, "--delay", delay.String()})})
}

// StartServe starts the server as a separate process, with a repository, an engine and more variables.
func (b *Testbed) StartServe(ctx context.Context, upstreamURL, engineURL, alias string, more ...string) (*Child, error) {
	dir, err := b.NewFolder()
	if err != nil {
		return nil, err
	}
	return b.StartServeIn(ctx, dir, upstreamURL, engineURL, alias, more...)
}

// StartServeIn is StartServe with a data folder.
func (b *Testbed) StartServeIn(ctx context.Context, dir, upstreamURL, engineURL, alias string, more ...string) (*Child, error) {
	env := append(append(Settings(dir, upstreamURL, engineURL, alias), setting.Variable("log.format")+"=json"), more...)
	return b.Start(ctx, ChildSpec{Address: LoggedAddress, Signalled: true, Command: b.Server, Env: env})
}

// Received returns the number of documents that a sink received.
func Received(ctx context.Context, sink *direct.Client) (int, error) {
	answer, err := sink.Call(ctx, http.MethodGet, standin.ReceivedPath, "", nil)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(answer))
	if err != nil {
		return 0, core.WrapError(core.CodeInternal, "a sink's count is not a number", err)
	}
	return n, nil
}
