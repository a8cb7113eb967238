package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
)

// memoryPollInterval is the interval of reading a process's resident memory.
const memoryPollInterval = 50 * time.Millisecond

// megabyte is the unit of the figures, 10⁶ bytes.
const megabyte = 1e6

// resident is the resident memory of a process, in megabytes.
type resident struct {
	// most is the maximum, usual the median during the backfill.
	most, usual float64
	took        time.Duration
}

// memory measures a server's resident memory during backfills of a small and a large study, with an engine that responds at once and
// with a slow one.
func (b *bench) memory(ctx context.Context) (*results.Report, error) {
	large, small := b.Sizes.Records, max(1, b.Sizes.Records/4)
	report := &results.Report{What: fmt.Sprintf("resident memory (VmHWM, VmRSS) of `tutti serve` with the default configuration, a fresh process each "+
		"time, during a backfill of one study into an engine that answers at once, and into one that takes %s for each "+
		"bulk request", b.Sizes.SlowBulk)}
	few, many, err := results.Alternate(1,
		func() (resident, error) { return b.held(ctx, small, 0) },
		func() (resident, error) { return b.held(ctx, large, 0) })
	if err != nil {
		return nil, err
	}
	slow, err := b.held(ctx, large, b.Sizes.SlowBulk)
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
func (b *bench) held(ctx context.Context, records int, delay time.Duration) (_ resident, err error) {
	b.say("memory: one study of %d, %s for each bulk request", records, delay)
	from, err := b.startUpstream(ctx, 1, records)
	if err != nil {
		return resident{}, err
	}
	defer from.stop()
	to, err := b.startSink(ctx, delay)
	if err != nil {
		return resident{}, err
	}
	defer to.stop()
	server, err := b.startServe(ctx, from.url, to.url, b.newName("memory"))
	if err != nil {
		return resident{}, err
	}
	defer server.stop()

	watched, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	var seen []float64
	var watchErr error
	watching.Go(func() { seen, watchErr = watch(watched, server.cmd.Process.Pid) })
	c := direct.NewClient(server.url)
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
	_, most, err := status(server.cmd.Process.Pid)
	return resident{most: most, usual: results.Quantile(seen, 0.5), took: took}, err
}

// watch reads a process's resident memory until ctx ends, at least once.
func watch(ctx context.Context, pid int) ([]float64, error) {
	var seen []float64
	for {
		now, _, err := status(pid)
		if err != nil {
			return nil, err
		}
		seen = append(seen, now)
		if retry.Sleep(ctx, memoryPollInterval) != nil {
			return seen, nil
		}
	}
}

// status returns the resident memory of a process, current and maximum, in megabytes (proc(5), status).
func status(pid int) (now, most float64, err error) {
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
		return kib * 1024 / megabyte
	}
	now, most = read("VmRSS"), read("VmHWM")
	return now, most, err
}
