package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"tutti/internal/core"
)

// Testbed is what the benchmarks of one run share.
type Testbed struct {
	Config
	// Dir holds all files of the run.
	Dir string
	// made counts the generated names.
	made int
}

// New sets the defaults of cfg and creates a directory for the files of a run. The caller must close it.
func New(cfg Config) (*Testbed, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tutti-bench-")
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "creating a directory for the benchmarks", err)
	}
	return &Testbed{Config: cfg, Dir: dir}, nil
}

// Close removes the files of the run.
func (b *Testbed) Close() error { return os.RemoveAll(b.Dir) }

// Say prints progress.
func (b *Testbed) Say(format string, args ...any) {
	fmt.Fprintf(b.Progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// NewName returns a name for an index that is not used elsewhere.
func (b *Testbed) NewName(what string) string {
	b.made++
	return fmt.Sprintf("bench-%s-%d-%d", strings.ToLower(what), os.Getpid(), b.made)
}

// NewFolder creates an empty directory, which is removed after the run.
func (b *Testbed) NewFolder() (string, error) {
	b.made++
	dir := filepath.Join(b.Dir, fmt.Sprint(b.made))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", core.WrapError(core.CodeUnavailable, "creating a directory", err)
	}
	return dir, nil
}

// Profiled runs work with a CPU profile and writes a heap profile after it: <name>.cpu.pprof and <name>.heap.pprof, whose alloc_space
// shows all allocations.
func (b *Testbed) Profiled(name string, work func() error) (err error) {
	if err := os.MkdirAll(b.ProfileDir, 0o755); err != nil {
		return core.WrapError(core.CodeInvalid, "creating the directory for profiles", err)
	}
	cpu, err := os.Create(filepath.Join(b.ProfileDir, name+".cpu.pprof"))
	if err != nil {
		return core.WrapError(core.CodeInvalid, "creating a profile", err)
	}
	defer func() { err = errors.Join(err, cpu.Close()) }()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return core.WrapError(core.CodeInternal, "profiling", err)
	}
	err = work()
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	heap, err := os.Create(filepath.Join(b.ProfileDir, name+".heap.pprof"))
	if err != nil {
		return core.WrapError(core.CodeInvalid, "creating a profile", err)
	}
	defer func() { err = errors.Join(err, heap.Close()) }()
	runtime.GC() // updates the profile
	if err := pprof.WriteHeapProfile(heap); err != nil {
		return core.WrapError(core.CodeInternal, "profiling", err)
	}
	return nil
}
