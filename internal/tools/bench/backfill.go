package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// backfillRun is one comparison of tutti with the engine's maximum.
type backfillRun struct {
	b        *testbed.Testbed
	engine   *direct.Engine
	corpus   *standin.Corpus
	upstream *testkit.SongServer
	ceiling  *direct.Ceiling
	// mapping is tutti's mapping after all documents, which the ceiling's indexes have from the start.
	mapping json.RawMessage
}

// backfill compares a backfill by tutti with prebuilt bulk requests of the same documents to the same engine.
func backfill(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	b.Say("backfill: generating %d analyses", b.Sizes.Records)
	r := &backfillRun{b: b, corpus: standin.Generate(b.Sizes.Studies, b.Sizes.Records)}
	var err error
	if r.upstream, err = r.corpus.Serve(); err != nil {
		return nil, err
	}
	defer r.upstream.Close()
	if r.engine, err = direct.NewEngine(ctx, b.ElasticsearchURL); err != nil {
		return nil, err
	}
	defer r.engine.Close()
	report := &results.Report{What: fmt.Sprintf("%s Song analyses of %s bytes in %d studies into Elasticsearch, %d pairs side by side: "+
		"prebuilt bulk requests of the same documents (the ceiling), and tutti from the trigger to the job's success, "+
		"sweep included", results.Number(float64(b.Sizes.Records)), results.Number(r.corpus.MeanBytes()), b.Sizes.Studies, b.Sizes.Pairs)}
	if err := r.warmUp(ctx, report); err != nil {
		return nil, err
	}
	top, own, err := results.Alternate(b.Sizes.Pairs,
		func() (writeRun, error) { return r.runCeiling(ctx, r.ceiling.Connections) },
		func() (writeRun, error) { return r.runTutti(ctx) })
	if err != nil {
		return nil, err
	}
	r.compare(report, top, own)
	if b.ProfileDir == "" {
		return report, nil
	}
	b.Say("backfill: an additional run under the profiler")
	return report, b.Profiled("backfill", func() error {
		_, err := r.runTutti(ctx)
		return err
	})
}

// writeRun is one run that writes all documents.
type writeRun struct {
	// rate is in documents per second.
	rate float64
	// engine and own are the CPU times per document of the engine and of this process, in microseconds.
	engine, own float64
}

// compare adds the figures of all pairs.
func (r *backfillRun) compare(report *results.Report, top, own []writeRun) {
	rates := func(l writeRun) float64 { return l.rate }
	engine := func(l writeRun) float64 { return l.engine }
	process := func(l writeRun) float64 { return l.own }
	report.Add(
		results.Figure{Name: fmt.Sprintf("ceiling, documents/s (%d connections)", r.ceiling.Connections), Values: results.Select(top, rates)},
		results.Figure{Name: "tutti, documents/s", Values: results.Select(own, rates)},
		results.Ratio("tutti / ceiling", results.AtLeast(0.85), results.Select(top, rates), results.Select(own, rates)),
		results.Figure{Name: "engine's CPU under the ceiling, µs per document", Values: results.Select(top, engine)},
		results.Figure{Name: "engine's CPU under tutti, µs per document", Values: results.Select(own, engine)},
		results.Figure{Name: "this process's CPU under the ceiling, µs per document", Values: results.Select(top, process)},
		results.Figure{Name: "this process's CPU under tutti, its repository included, µs per document", Values: results.Select(own, process)},
	)
}

// warmUp creates the mapping with tutti, warms up the engine, and finds its best number of connections.
func (r *backfillRun) warmUp(ctx context.Context, report *results.Report) error {
	r.b.Say("backfill: warming up")
	if _, err := r.runTutti(ctx); err != nil {
		return err
	}
	r.ceiling = direct.NewCeiling(r.engine.Index, r.corpus, testbed.Block(r.upstream.URL(), ""))
	candidates := []int{1, 2, 4}
	rates := make([]float64, len(candidates))
	for range 2 { // each twice, since other processes may disturb one
		for i, connections := range candidates {
			l, err := r.runCeiling(ctx, connections)
			if err != nil {
				return err
			}
			rates[i] = max(rates[i], l.rate)
		}
	}
	said := make([]string, len(candidates))
	for i, connections := range candidates {
		said[i] = fmt.Sprintf("%s over %d", results.Number(rates[i]), connections)
		if rates[i] == slices.Max(rates) {
			r.ceiling.Connections = connections
		}
	}
	report.Note("the ceiling's connections were chosen in the warm-up, documents/s: %s", strings.Join(said, ", "))
	return nil
}

// runCeiling writes the ceiling's documents into a new index.
func (r *backfillRun) runCeiling(ctx context.Context, connections int) (_ writeRun, err error) {
	alias := r.b.NewName("ceiling")
	if err := r.engine.Make(ctx, alias, r.mapping); err != nil {
		return writeRun{}, err
	}
	defer func() { err = errors.Join(err, r.engine.Drop(context.WithoutCancel(ctx), alias)) }()
	l, err := r.measure(ctx, "ceiling", func() (time.Duration, error) {
		return r.ceiling.Write(ctx, r.engine.Client, alias, connections)
	})
	if err != nil {
		return writeRun{}, err
	}
	return l, r.engine.Holds(ctx, alias, r.ceiling.Documents)
}

// runTutti indexes the repository into a new index.
func (r *backfillRun) runTutti(ctx context.Context) (_ writeRun, err error) {
	alias := r.b.NewName("backfill")
	t, err := r.b.StartTutti(ctx, r.upstream.URL(), r.b.ElasticsearchURL, alias)
	if err != nil {
		return writeRun{}, err
	}
	defer func() { err = errors.Join(err, r.engine.Drop(context.WithoutCancel(ctx), alias)) }()
	defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	l, err := r.measure(ctx, "tutti", func() (time.Duration, error) {
		job, took, err := t.Client.Backfill(ctx)
		if err != nil {
			return 0, err
		}
		return took, direct.IndexedBy(job, len(r.corpus.Analyses))
	})
	if err != nil {
		return writeRun{}, err
	}
	if err := r.engine.Holds(ctx, alias, len(r.corpus.Analyses)); err != nil {
		return writeRun{}, err
	}
	if r.mapping == nil {
		r.mapping, err = r.engine.Index.Mapping(ctx, alias)
	}
	return l, err
}

// measure measures the time and CPU of write.
func (r *backfillRun) measure(ctx context.Context, what string, write func() (time.Duration, error)) (writeRun, error) {
	runtime.GC()
	engineBefore, err := r.engine.UsedCPU(ctx)
	if err != nil {
		return writeRun{}, err
	}
	user, system, err := direct.UsedCPU()
	if err != nil {
		return writeRun{}, err
	}
	took, err := write()
	if err != nil {
		return writeRun{}, err
	}
	userAfter, systemAfter, err := direct.UsedCPU()
	if err != nil {
		return writeRun{}, err
	}
	engineAfter, err := r.engine.UsedCPU(ctx)
	n := len(r.corpus.Analyses)
	r.b.Say("backfill: %s: %s documents/s", what, results.Number(results.Rate(n, took)))
	each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(n) }
	return writeRun{
		rate: results.Rate(n, took), engine: each(engineAfter - engineBefore), own: each(userAfter + systemAfter - user - system),
	}, err
}

// fleetSize is how many processes share a backfill.
const fleetSize = 3

// killPoll is how often a job is read of which a process is to be killed.
const killPoll = 10 * time.Millisecond

// fleetRun compares a backfill by one process with the same by several, on a NATS cluster of three servers.
type fleetRun struct {
	b        *testbed.Testbed
	engine   *direct.Engine
	upstream *testbed.Child
	cluster  *queuetest.Cluster
	// runs counts the runs.
	runs int
}

// fleet measures how much several processes on one machine lose against one process, and that they finish after one was killed.
func fleet(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	dir, err := b.NewFolder()
	if err != nil {
		return nil, err
	}
	r := &fleetRun{b: b}
	if r.cluster, err = queuetest.StartCluster(ctx, dir); err != nil {
		return nil, err
	}
	defer r.cluster.Stop()
	if r.upstream, err = b.StartUpstream(ctx, b.Sizes.Studies, b.Sizes.Records); err != nil {
		return nil, err
	}
	defer r.upstream.Stop()
	if r.engine, err = direct.NewEngine(ctx, b.ElasticsearchURL); err != nil {
		return nil, err
	}
	defer r.engine.Close()
	if _, err := r.run(ctx, fleetSize, false); err != nil { // the engine warms up
		return nil, err
	}
	one, all, err := results.Alternate(b.Sizes.Pairs,
		func() (float64, error) { return r.run(ctx, 1, false) },
		func() (float64, error) { return r.run(ctx, fleetSize, false) })
	if err != nil {
		return nil, err
	}
	killed, err := r.run(ctx, fleetSize, true)
	if err != nil {
		return nil, err
	}
	report := &results.Report{What: fmt.Sprintf("%s Song analyses in %d studies into Elasticsearch, by processes on a cluster of three "+
		"NATS servers in this process, %d pairs side by side, from the trigger to the job's success, sweep included",
		results.Number(float64(b.Sizes.Records)), b.Sizes.Studies, b.Sizes.Pairs)}
	report.Add(
		results.Figure{Name: "1 process, documents/s", Values: one},
		results.Figure{Name: fmt.Sprintf("%d processes, documents/s", fleetSize), Values: all},
		results.Ratio(fmt.Sprintf("%d processes / 1 process", fleetSize), results.AtLeast(0.9), one, all),
		results.Figure{Name: "one of them killed, documents/s (others take over after 30 s)", Values: []float64{killed}},
	)
	return report, nil
}

// run returns the rate of a backfill by new processes into a new index. With kill, the last of them is killed when the job
// has read records.
func (r *fleetRun) run(ctx context.Context, processes int, kill bool) (_ float64, err error) {
	alias := r.b.NewName("fleet")
	defer func() { err = errors.Join(err, r.engine.Drop(context.WithoutCancel(ctx), alias)) }()
	// Each run has the streams of its own account; the streams of earlier runs are idle.
	queue := r.cluster.URLs(r.runs % queuetest.Accounts)
	r.runs++
	var members []*testbed.Child
	defer func() {
		for _, m := range members {
			m.Stop()
		}
	}()
	for range processes {
		m, err := r.b.StartServe(ctx, r.upstream.URL, r.b.ElasticsearchURL, alias, testbed.Variables(map[string]string{
			"queue.url": queue, "store.url": r.b.PostgresURL,
		})...)
		if err != nil {
			return 0, err
		}
		members = append(members, m)
	}
	client := direct.NewClient(members[0].URL)
	defer client.Close()
	killed := make(chan error, 1)
	if kill {
		go func() { killed <- r.killAmid(ctx, client, members[len(members)-1]) }()
	} else {
		killed <- nil
	}
	_, took, err := client.Backfill(ctx)
	if err = errors.Join(err, <-killed); err != nil {
		return 0, err
	}
	r.b.Say("fleet: %d of %d processes: %s documents/s", processes, fleetSize, results.Number(results.Rate(r.b.Sizes.Records, took)))
	return results.Rate(r.b.Sizes.Records, took), r.engine.Holds(ctx, alias, r.b.Sizes.Records)
}

// killAmid kills a process when the only job has read records.
func (r *fleetRun) killAmid(ctx context.Context, client *direct.Client, c *testbed.Child) error {
	for {
		answer, err := client.Call(ctx, http.MethodGet, "/jobs", "", nil)
		if err != nil {
			return err
		}
		job := gjson.GetBytes(answer, "jobs.0")
		switch {
		case job.Get("endedAt").String() != "":
			return core.NewError(core.CodeInternal, "the job ended before a process was killed")
		case job.Get("totals.fetched").Int() > 0:
			return c.Cmd.Process.Kill()
		}
		if err := retry.Sleep(ctx, killPoll); err != nil {
			return err
		}
	}
}
