package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// costRun measures tutti's own CPU time: repository and engine are separate processes.
type costRun struct {
	tutti   *testbed.Tutti
	sink    *direct.Client
	records int
}

// cost is the cost of one backfill.
type cost struct {
	user, system, took time.Duration
}

// ownCost measures the CPU time of this process per record transferred from a repository to an engine.
func ownCost(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	from, err := b.StartUpstream(ctx, b.Sizes.Studies, b.Sizes.Records)
	if err != nil {
		return nil, err
	}
	defer from.Stop()
	to, err := b.StartSink(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer to.Stop()
	t, err := b.StartTutti(ctx, from.URL, to.URL, b.NewName("cost"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	r := &costRun{tutti: t, sink: direct.NewClient(to.URL), records: b.Sizes.Records}
	defer r.sink.Close()

	b.Say("own-cost: warming up")
	if _, err := r.once(ctx); err != nil {
		return nil, err
	}
	report := &results.Report{What: fmt.Sprintf("%s Song analyses in %d studies from a repository to an engine that answers at once, both "+
		"separate processes on this machine: fetch, document, bulk request, outcome. CPU is all that this process "+
		"used (getrusage), queue, HTTP server and this bench included", results.Number(float64(r.records)), b.Sizes.Studies)}
	if err := r.measure(ctx, b, report); err != nil {
		return nil, err
	}
	if b.ProfileDir == "" {
		return report, nil
	}
	b.Say("own-cost: additional runs under the profiler")
	return report, b.Profiled("own-cost", func() error {
		for range b.Sizes.Pairs {
			if _, err := r.once(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// measure runs with the default GOMAXPROCS and then with 1.
func (r *costRun) measure(ctx context.Context, b *testbed.Testbed, report *results.Report) error {
	asItIs := runtime.GOMAXPROCS(0)
	for _, procs := range []int{asItIs, 1} {
		runtime.GOMAXPROCS(procs)
		all, user, system, speed, err := r.runs(ctx, b)
		runtime.GOMAXPROCS(asItIs)
		if err != nil {
			return err
		}
		total := results.Figure{Name: fmt.Sprintf("CPU per record, µs, GOMAXPROCS %d", procs), Values: all}
		rates := results.Figure{Name: fmt.Sprintf("records/s, GOMAXPROCS %d", procs), Values: speed}
		if procs == asItIs {
			total.Target, rates.Target = results.AtMost(10), results.AtLeast(100_000)
		}
		report.Add(total,
			results.Figure{Name: fmt.Sprintf("CPU per record in its own code, µs, GOMAXPROCS %d", procs), Values: user},
			results.Figure{Name: fmt.Sprintf("CPU per record in the system, µs, GOMAXPROCS %d", procs), Values: system},
			rates)
		if asItIs == 1 {
			break
		}
	}
	report.Note("records/s: repository and engine use the same %d CPUs", runtime.NumCPU())
	return nil
}

func (r *costRun) runs(ctx context.Context, b *testbed.Testbed) (all, user, system, speed []float64, err error) {
	for i := range b.Sizes.Pairs {
		c, err := r.once(ctx)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(r.records) }
		b.Say("own-cost: run %d: %.2f µs per record, %s records/s", i+1, each(c.user+c.system), results.Number(results.Rate(r.records, c.took)))
		all, user, system = append(all, each(c.user+c.system)), append(user, each(c.user)), append(system, each(c.system))
		speed = append(speed, results.Rate(r.records, c.took))
	}
	return all, user, system, speed, nil
}

// once runs one backfill and checks that the engine received each record once.
func (r *costRun) once(ctx context.Context) (cost, error) {
	before, err := testbed.Received(ctx, r.sink)
	if err != nil {
		return cost{}, err
	}
	runtime.GC()
	user, system, err := direct.UsedCPU()
	if err != nil {
		return cost{}, err
	}
	job, took, err := r.tutti.Client.Backfill(ctx)
	if err != nil {
		return cost{}, err
	}
	userAfter, systemAfter, err := direct.UsedCPU()
	if err != nil {
		return cost{}, err
	}
	if err := direct.IndexedBy(job, r.records); err != nil {
		return cost{}, err
	}
	after, err := testbed.Received(ctx, r.sink)
	if err == nil && after-before != r.records {
		err = core.NewError(core.CodeInternal, fmt.Sprintf("the engine received %d documents for %d records", after-before, r.records))
	}
	return cost{user: userAfter - user, system: systemAfter - system, took: took}, err
}
