package bench

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"tutti/internal/core"
)

// profiled runs work with a CPU profile and writes a heap profile after it: <name>.cpu.pprof and <name>.heap.pprof, whose alloc_space
// shows all allocations.
func (b *bench) profiled(name string, work func() error) (err error) {
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
