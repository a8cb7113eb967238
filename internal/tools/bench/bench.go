// Package bench measures tutti's performance on this machine, and prints it next to the target and the machine's own noise: every ratio
// compares two arms whose runs alternate, and the first arm with itself. It
// contains no constants of another machine: a ratio compares runs made side by side. It uses the app over HTTP, like any client;
// repositories, and engines that respond at once, run in separate processes when their CPU time must not count as tutti's. Only
// cmd/tutti-bench imports it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/bench/results"
)

// benchmark is one of the available benchmarks.
type benchmark struct {
	name string
	// engine is set when it requires a real Elasticsearch.
	engine bool
	run    func(b *bench, ctx context.Context) (*results.Report, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{name: "backfill", engine: true, run: (*bench).backfill},
		{name: "own-cost", run: (*bench).ownCost},
		{name: "memory", run: (*bench).memory},
		{name: "trigger", run: (*bench).trigger},
		{name: "intake", run: (*bench).intake},
		{name: "coalesce", run: (*bench).coalesce},
		{name: "notify", run: (*bench).notify},
		{name: "rebuild", run: (*bench).rebuild},
		{name: "embedded-index", run: (*bench).embeddedIndex},
		{name: "embedded-search", run: (*bench).embeddedSearch},
		{name: "download", run: (*bench).download},
		{name: "schemas", run: (*bench).schemas},
		{name: "metadata", run: (*bench).metadata},
		{name: "introspection", run: (*bench).introspection},
		{name: "organizations", run: (*bench).organizations},
		{name: "dead-letters", run: (*bench).deadLetters},
		{name: "search", engine: true, run: (*bench).search},
		{name: "difference", engine: true, run: (*bench).difference},
		{name: "fleet", engine: true, run: (*bench).fleet},
	}
}

// Names lists the benchmarks in the order in which they run.
func Names() []string {
	var names []string
	for _, b := range benchmarks() {
		names = append(names, b.name)
	}
	return names
}

func find(name string) (benchmark, bool) {
	i := slices.IndexFunc(benchmarks(), func(b benchmark) bool { return b.name == name })
	if i < 0 {
		return benchmark{}, false
	}
	return benchmarks()[i], true
}

// bench is the state of one call of Run.
type bench struct {
	Config
	// dir holds all files of the run.
	dir string
	// made counts the generated names.
	made int
}

// Run runs the benchmarks of cfg, prints each Report as soon as it is complete and all figures at the end, and returns all reports. A
// benchmark that could not complete is an error, after the others have run; a missed target is not.
func Run(ctx context.Context, cfg Config) (_ []results.Report, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tutti-bench-")
	if err != nil {
		return nil, core.WrapError(core.CodeUnavailable, "creating a directory for the benchmarks", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{Config: cfg, dir: dir}
	all := results.All{Machine: results.ThisMachine(cfg.Version), DefaultSizes: cfg.Sizes == DefaultSizes(), Failed: map[string]string{}}
	fmt.Fprintln(cfg.Out, all.Machine)
	for _, m := range benchmarks() {
		if len(b.Names) > 0 && !slices.Contains(b.Names, m.name) || ctx.Err() != nil {
			continue
		}
		if m.engine && b.ElasticsearchURL == "" {
			fmt.Fprintf(b.Out, "\n%s: skipped, since it needs a real engine (--elasticsearch URL)\n", m.name)
			continue
		}
		began := time.Now()
		report, failure := m.run(b, ctx)
		if failure != nil {
			b.say("%s failed: %v", m.name, failure)
			all.Failed[m.name] = failure.Error()
			err = errors.Join(err, fmt.Errorf("benchmark %s: %w", m.name, failure))
			continue
		}
		report.Name, report.Seconds = m.name, time.Since(began).Seconds()
		all.Reports = append(all.Reports, *report)
		fmt.Fprintf(b.Out, "\n%s", report)
	}
	fmt.Fprintf(b.Out, "\n%s", all)
	if b.JSON != nil {
		err = errors.Join(err, all.WriteJSON(b.JSON))
	}
	return all.Reports, err
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.Progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// newName returns a name for an index that is not used elsewhere.
func (b *bench) newName(what string) string {
	b.made++
	return fmt.Sprintf("bench-%s-%d-%d", strings.ToLower(what), os.Getpid(), b.made)
}

// newFolder creates an empty directory, which is removed after the run.
func (b *bench) newFolder() (string, error) {
	b.made++
	dir := filepath.Join(b.dir, fmt.Sprint(b.made))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", core.WrapError(core.CodeUnavailable, "creating a directory", err)
	}
	return dir, nil
}

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
