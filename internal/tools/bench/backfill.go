package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"tutti/internal/tools/testkit"
)

// noisy is the spread of the ceiling's runs above which the ratio is not meaningful.
const noisy = 0.25

// backfillRun is one comparison of tutti with the engine's maximum.
type backfillRun struct {
	b        *bench
	engine   *engine
	corpus   *corpus
	upstream *testkit.SongServer
	ceiling  *ceiling
	// mapping is tutti's mapping after all documents, which the ceiling's indexes have from the start.
	mapping json.RawMessage
}

// backfill compares a backfill by tutti with prebuilt bulk requests of the same documents to the same engine.
func (b *bench) backfill(ctx context.Context) (*Report, error) {
	b.say("backfill: generating %d analyses", b.Sizes.Records)
	r := &backfillRun{b: b, corpus: generate(b.Sizes.Studies, b.Sizes.Records)}
	var err error
	if r.upstream, err = r.corpus.serve(); err != nil {
		return nil, err
	}
	defer r.upstream.Close()
	if r.engine, err = b.newEngine(ctx); err != nil {
		return nil, err
	}
	defer r.engine.close()
	report := &Report{What: fmt.Sprintf("%s Song analyses of %s bytes in %d studies into Elasticsearch, %d pairs side by side: "+
		"prebuilt bulk requests of the same documents (the ceiling), and tutti from the trigger to the job's success, "+
		"sweep included", number(float64(b.Sizes.Records)), number(r.corpus.each()), b.Sizes.Studies, b.Sizes.Pairs)}
	if err := r.warmUp(ctx, report); err != nil {
		return nil, err
	}
	var top, own []writeRun
	for pair := range b.Sizes.Pairs {
		t, o, err := r.pair(ctx, pair%2 == 1)
		if err != nil {
			return nil, err
		}
		b.say("backfill: pair %d: ceiling %s, tutti %s documents/s, ratio %.3f", pair+1, number(t.rate), number(o.rate), o.rate/t.rate)
		top, own = append(top, t), append(own, o)
	}
	r.compare(report, top, own)
	if b.ProfileDir == "" {
		return report, nil
	}
	b.say("backfill: an additional run under the profiler")
	return report, b.profiled("backfill", func() error {
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
func (r *backfillRun) compare(report *Report, top, own []writeRun) {
	figure := func(name string, legs []writeRun, of func(writeRun) float64) Figure {
		f := Figure{Name: name}
		for _, l := range legs {
			f.Values = append(f.Values, of(l))
		}
		return f
	}
	rates := func(l writeRun) float64 { return l.rate }
	engine := func(l writeRun) float64 { return l.engine }
	ceiling := figure(fmt.Sprintf("ceiling, documents/s (%d connections)", r.ceiling.connections), top, rates)
	ratio := Figure{Name: "tutti / ceiling", Target: atLeast(0.85)}
	for i := range top {
		ratio.Values = append(ratio.Values, own[i].rate/top[i].rate)
	}
	for _, f := range []Figure{
		ceiling, figure("tutti, documents/s", own, rates), ratio,
		figure("engine's CPU under the ceiling, µs per document", top, engine),
		figure("engine's CPU under tutti, µs per document", own, engine),
		figure("this process's CPU under the ceiling, µs per document", top, func(l writeRun) float64 { return l.own }),
		figure("this process's CPU under tutti, its repository included, µs per document", own, func(l writeRun) float64 { return l.own }),
	} {
		report.add(f)
	}
	report.note("noise: the ceiling's own runs differ by %.0f %%", 100*ceiling.Spread())
	if ceiling.Spread() > noisy {
		report.note("the spread is too large for a meaningful ratio: stop other processes on this machine")
	}
}

// warmUp creates the mapping with tutti, warms up the engine, and finds its best number of connections.
func (r *backfillRun) warmUp(ctx context.Context, report *Report) error {
	r.b.say("backfill: warming up")
	first, err := r.runTutti(ctx)
	if err != nil {
		return err
	}
	r.b.say("backfill: tutti while the engine warms up: %s documents/s", number(first.rate))
	r.ceiling = newCeiling(r.engine.index, r.corpus, block(r.upstream.URL(), ""))
	candidates := []int{1, 2, 4}
	rates := make([]float64, len(candidates))
	for range 2 { // each twice, since other processes may disturb one
		for i, connections := range candidates {
			l, err := r.runCeiling(ctx, connections)
			if err != nil {
				return err
			}
			r.b.say("backfill: %d connections: %s documents/s", connections, number(l.rate))
			rates[i] = max(rates[i], l.rate)
		}
	}
	said := make([]string, len(candidates))
	for i, connections := range candidates {
		said[i] = fmt.Sprintf("%s over %d", number(rates[i]), connections)
		if rates[i] == slices.Max(rates) {
			r.ceiling.connections = connections
		}
	}
	report.note("the ceiling's connections were chosen in the warm-up, documents/s: %s", strings.Join(said, ", "))
	return nil
}

// pair runs both once, tutti first with tuttiFirst.
func (r *backfillRun) pair(ctx context.Context, tuttiFirst bool) (top, own writeRun, err error) {
	if tuttiFirst {
		if own, err = r.runTutti(ctx); err != nil {
			return top, own, err
		}
	}
	if top, err = r.runCeiling(ctx, r.ceiling.connections); err != nil {
		return top, own, err
	}
	if !tuttiFirst {
		own, err = r.runTutti(ctx)
	}
	return top, own, err
}

// runCeiling writes the ceiling's documents into a new index.
func (r *backfillRun) runCeiling(ctx context.Context, connections int) (_ writeRun, err error) {
	alias := r.b.newName("ceiling")
	if err := r.engine.make(ctx, alias, r.mapping); err != nil {
		return writeRun{}, err
	}
	defer func() { err = errors.Join(err, r.engine.drop(context.WithoutCancel(ctx), alias)) }()
	l, err := r.measure(ctx, func() (time.Duration, error) {
		return r.ceiling.write(ctx, r.engine.client, alias, connections)
	})
	if err != nil {
		return writeRun{}, err
	}
	return l, r.engine.holds(ctx, alias, r.ceiling.documents)
}

// runTutti indexes the repository into a new index.
func (r *backfillRun) runTutti(ctx context.Context) (_ writeRun, err error) {
	alias := r.b.newName("backfill")
	t, err := r.b.startTutti(ctx, r.upstream.URL(), r.b.ElasticsearchURL, alias)
	if err != nil {
		return writeRun{}, err
	}
	defer func() { err = errors.Join(err, r.engine.drop(context.WithoutCancel(ctx), alias)) }()
	defer func() { err = errors.Join(err, t.stop(ctx)) }()
	l, err := r.measure(ctx, func() (time.Duration, error) {
		job, took, err := t.client.backfill(ctx)
		if err != nil {
			return 0, err
		}
		return took, indexedBy(job, len(r.corpus.analyses))
	})
	if err != nil {
		return writeRun{}, err
	}
	if err := r.engine.holds(ctx, alias, len(r.corpus.analyses)); err != nil {
		return writeRun{}, err
	}
	if r.mapping == nil {
		r.mapping, err = r.engine.index.Mapping(ctx, alias)
	}
	return l, err
}

// measure measures the time and CPU of write.
func (r *backfillRun) measure(ctx context.Context, write func() (time.Duration, error)) (writeRun, error) {
	runtime.GC()
	engineBefore, err := r.engine.usedCPU(ctx)
	if err != nil {
		return writeRun{}, err
	}
	user, system, err := usedCPU()
	if err != nil {
		return writeRun{}, err
	}
	took, err := write()
	if err != nil {
		return writeRun{}, err
	}
	userAfter, systemAfter, err := usedCPU()
	if err != nil {
		return writeRun{}, err
	}
	engineAfter, err := r.engine.usedCPU(ctx)
	n := len(r.corpus.analyses)
	each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(n) }
	return writeRun{
		rate: rate(n, took), engine: each(engineAfter - engineBefore), own: each(userAfter + systemAfter - user - system),
	}, err
}

func rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
