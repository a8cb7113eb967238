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
	"slices"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/bench/intake"
	"tutti/internal/tools/bench/querying"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// benchmark is one of the available benchmarks.
type benchmark struct {
	name string
	// engine is set when it requires a real Elasticsearch.
	engine bool
	run    func(ctx context.Context, b *testbed.Testbed) (*results.Report, error)
}

func benchmarks() []benchmark {
	return []benchmark{
		{name: "backfill", engine: true, run: backfill},
		{name: "own-cost", run: ownCost},
		{name: "memory", run: memory},
		{name: "trigger", run: trigger},
		{name: "intake", run: intake.Rates},
		{name: "coalesce", run: coalesce},
		{name: "notify", run: notify},
		{name: "rebuild", run: rebuild},
		{name: "readers", run: readers},
		{name: "embedded-index", run: querying.EmbeddedIndex},
		{name: "embedded-search", run: querying.EmbeddedSearch},
		{name: "download", run: querying.Download},
		{name: "schemas", run: intake.AnalysisTypes},
		{name: "metadata", run: intake.Metadata},
		{name: "introspection", run: querying.Introspection},
		{name: "organizations", run: organizations},
		{name: "dead-letters", run: deadLetters},
		{name: "search", engine: true, run: querying.Search},
		{name: "difference", engine: true, run: difference},
		{name: "fleet", engine: true, run: fleet},
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

// checkNames returns an error if a benchmark does not exist, or needs an engine that cfg lacks.
func checkNames(cfg testbed.Config) error {
	for _, name := range cfg.Names {
		if m, ok := find(name); !ok {
			return &core.Error{
				Code: core.CodeInvalid, Message: fmt.Sprintf("there is no benchmark %q", name),
				Hint: fmt.Sprintf("the benchmarks are %v", Names()),
			}
		} else if m.engine && cfg.ElasticsearchURL == "" {
			return core.NewError(core.CodeInvalid, name+" needs a real engine: set --elasticsearch")
		}
	}
	return nil
}

// Run runs the benchmarks of cfg, prints each Report as soon as it is complete and all figures at the end, and returns all reports. A
// benchmark that could not complete is an error, after the others have run; a missed target is not.
func Run(ctx context.Context, cfg testbed.Config) (_ []results.Report, err error) {
	if err := checkNames(cfg); err != nil {
		return nil, err
	}
	b, err := testbed.New(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	all := results.All{Machine: results.ThisMachine(b.Version), DefaultSizes: b.Sizes == testbed.DefaultSizes(), Failed: map[string]string{}}
	fmt.Fprintln(b.Out, all.Machine)
	for _, m := range benchmarks() {
		if len(b.Names) > 0 && !slices.Contains(b.Names, m.name) || ctx.Err() != nil {
			continue
		}
		if m.engine && b.ElasticsearchURL == "" {
			fmt.Fprintf(b.Out, "\n%s: skipped, since it needs a real engine (--elasticsearch URL)\n", m.name)
			continue
		}
		began := time.Now()
		report, failure := m.run(ctx, b)
		if failure != nil {
			b.Say("%s failed: %v", m.name, failure)
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
