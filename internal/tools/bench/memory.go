package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

// resident is the resident memory of a process, in megabytes.
type resident struct {
	// most is the maximum, usual the median during the backfill.
	most, usual float64
	took        time.Duration
}

// memory measures a server's resident memory during backfills of a small and a large study, with an engine that responds at once and
// with a slow one.
func memory(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	large, small := b.Sizes.Records, max(1, b.Sizes.Records/4)
	report := &results.Report{What: fmt.Sprintf("resident memory (VmHWM, VmRSS) of `tutti serve` with the default configuration, a fresh process each "+
		"time, during a backfill of one study into an engine that answers at once, and into one that takes %s for each "+
		"bulk request", b.Sizes.SlowBulk)}
	few, many, err := results.Alternate(1,
		func() (resident, error) { return held(ctx, b, small, 0) },
		func() (resident, error) { return held(ctx, b, large, 0) })
	if err != nil {
		return nil, err
	}
	slow, err := held(ctx, b, large, b.Sizes.SlowBulk)
	if err != nil {
		return nil, err
	}
	most := func(r resident) float64 { return r.most }
	for _, of := range []struct {
		what    string
		records int
		runs    []resident
	}{{"", small, few}, {"", large, many}, {"slow engine, ", large, []resident{slow}}} {
		name := fmt.Sprintf("%sstudy of %s", of.what, results.Number(float64(of.records)))
		report.Add(
			results.Figure{Name: name + ": highest, MB", Values: results.Select(of.runs, most), Target: results.AtMost(150)},
			results.Figure{Name: name + ": median, MB", Values: results.Select(of.runs, func(r resident) float64 { return r.usual })},
		)
		report.Note("%s took %.1f s", name, of.runs[0].took.Seconds())
	}
	report.Add(results.Ratio(fmt.Sprintf("growth, %d times as many records", large/small), results.AtMost(1.15),
		results.Select(few, most), results.Select(many, most)))
	return report, nil
}

// held measures the memory of one backfill.
func held(ctx context.Context, b *testbed.Testbed, records int, delay time.Duration) (_ resident, err error) {
	b.Say("memory: one study of %d, %s for each bulk request", records, delay)
	from, err := b.StartUpstream(ctx, 1, records)
	if err != nil {
		return resident{}, err
	}
	defer from.Stop()
	to, err := b.StartSink(ctx, delay)
	if err != nil {
		return resident{}, err
	}
	defer to.Stop()
	server, err := b.StartServe(ctx, from.URL, to.URL, b.NewName("memory"))
	if err != nil {
		return resident{}, err
	}
	defer server.Stop()

	watched, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	var seen []float64
	var watchErr error
	watching.Go(func() { seen, watchErr = watch(watched, server.Cmd.Process.Pid) })
	c := direct.NewClient(server.URL)
	defer c.Close()
	job, took, err := c.Backfill(ctx)
	end()
	watching.Wait()
	if err := errors.Join(err, watchErr); err != nil {
		return resident{}, err
	}
	if err := direct.IndexedBy(job, records); err != nil {
		return resident{}, err
	}
	_, most, err := testbed.ResidentMemory(server.Cmd.Process.Pid)
	return resident{most: most, usual: results.Quantile(seen, 0.5), took: took}, err
}

// watch reads a process's resident memory until ctx ends, at least once.
func watch(ctx context.Context, pid int) ([]float64, error) {
	var seen []float64
	for {
		now, _, err := testbed.ResidentMemory(pid)
		if err != nil {
			return nil, err
		}
		seen = append(seen, now)
		if retry.Sleep(ctx, testbed.MemoryPollInterval) != nil {
			return seen, nil
		}
	}
}
