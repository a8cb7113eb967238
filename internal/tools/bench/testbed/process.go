package testbed

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
)

// MemoryPollInterval is the interval of reading a process's resident memory.
const MemoryPollInterval = 50 * time.Millisecond

// Megabyte is the unit of the figures, 10⁶ bytes.
const Megabyte = 1e6

// maxMemory returns the maximum memory of a process until ctx ends, in megabytes.
func maxMemory(ctx context.Context, pid int) (most float64, err error) {
	for {
		now, err := OwnMemory(pid)
		if err != nil {
			return most, err
		}
		most = max(most, now)
		if retry.Sleep(ctx, MemoryPollInterval) != nil {
			return most, nil
		}
	}
}

// OwnMemory returns the resident memory of a process without file-backed memory, in megabytes (proc(5), status).
func OwnMemory(pid int) (float64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, core.WrapError(core.CodeUnsupported, "the memory of a process is not available on this system", err)
	}
	_, rest, _ := strings.Cut(string(text), "\nRssAnon:")
	kib, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 64)
	if err != nil {
		return 0, core.WrapError(core.CodeUnsupported, "the memory of a process cannot be parsed", err)
	}
	return kib * 1024 / Megabyte, nil
}

// ResidentMemory returns the resident memory of a process, current and maximum, in megabytes (proc(5), status).
func ResidentMemory(pid int) (now, most float64, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, core.WrapError(core.CodeUnsupported, "the memory of a process is not available on this system", err)
	}
	read := func(name string) float64 {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		rest, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
		kib, parseErr := strconv.ParseFloat(rest, 64)
		if parseErr != nil {
			err = core.WrapError(core.CodeUnsupported, "the memory of a process cannot be parsed", parseErr)
		}
		return kib * 1024 / Megabyte
	}
	now, most = read("VmRSS"), read("VmHWM")
	return now, most, err
}

// HeapInUse returns the bytes of the heap in use. The second garbage collection frees what had finalizers in the first, such as the
// connections of what was measured before.
func HeapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse)
}

// ServerCPU returns the CPU seconds that a server has used.
func ServerCPU(ctx context.Context, c *direct.Client) (float64, error) {
	answer, err := c.Call(ctx, http.MethodGet, "/metrics", "", nil)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(answer), "\nprocess_cpu_seconds_total ")
	if !found {
		return 0, core.NewError(core.CodeInternal, "the server's metrics do not have the CPU time that it used")
	}
	line, _, _ := strings.Cut(rest, "\n")
	return gjson.Parse(line).Float(), nil
}

// MaxMemoryDuring returns the maximum memory of a process while work runs, in megabytes.
func (c *Child) MaxMemoryDuring(ctx context.Context, work func() error) (most float64, err error) {
	until, end := context.WithCancel(ctx)
	defer end()
	var watching sync.WaitGroup
	var watchErr error
	watching.Go(func() { most, watchErr = maxMemory(until, c.Cmd.Process.Pid) })
	err = work()
	end()
	watching.Wait()
	return most, errors.Join(err, watchErr)
}
