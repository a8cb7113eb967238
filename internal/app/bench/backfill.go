package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"tutti/internal/testkit"
)

// backfillRun is one comparison of tutti with the engine's own ceiling.
type backfillRun struct {
	b        *bench
	engine   *engine
	corpus   *corpus
	upstream *testkit.SongServer
	ceiling  *ceiling
	// mapping is what tutti's mapping has become after all documents, which the ceiling's indices have from the start.
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
	var ceilings, tuttis, ratios []float64
	for pair := range b.Sizes.Pairs {
		top, own, err := r.pair(ctx, pair%2 == 1)
		if err != nil {
			return nil, err
		}
		b.say("backfill: pair %d: ceiling %s, tutti %s documents/s, ratio %.3f", pair+1, number(top), number(own), own/top)
		ceilings, tuttis, ratios = append(ceilings, top), append(tuttis, own), append(ratios, own/top)
	}
	top := Figure{Name: fmt.Sprintf("ceiling, documents/s (%d connections)", r.ceiling.connections), Values: ceilings}
	report.add(top)
	report.add(Figure{Name: "tutti, documents/s", Values: tuttis})
	report.add(Figure{Name: "tutti / ceiling", Values: ratios, Target: atLeast(0.80)})
	report.note("noise: the ceiling's own runs differ by %.0f %%", 100*top.Spread())
	if b.ProfileDir == "" {
		return report, nil
	}
	b.say("backfill: an additional run under the profiler")
	return report, b.profiled("backfill", func() error {
		_, err := r.tutti(ctx)
		return err
	})
}

// warmUp lets tutti make the mapping, warms the engine, and finds the number of connections that serves it best.
func (r *backfillRun) warmUp(ctx context.Context, report *Report) error {
	r.b.say("backfill: warming up")
	rate, err := r.tutti(ctx)
	if err != nil {
		return err
	}
	r.b.say("backfill: tutti while the engine warms up: %s documents/s", number(rate))
	r.ceiling = newCeiling(r.engine.index, r.corpus, block(r.upstream.URL(), ""))
	best, said := 0.0, ""
	for _, connections := range []int{1, 2, 4} {
		rate, err := r.top(ctx, connections)
		if err != nil {
			return err
		}
		r.b.say("backfill: %d connections: %s documents/s", connections, number(rate))
		said += fmt.Sprintf(", %s over %d", number(rate), connections)
		if rate > best {
			best, r.ceiling.connections = rate, connections
		}
	}
	report.note("the ceiling's connections were chosen in the warm-up, documents/s: %s", said[2:])
	return nil
}

// pair makes one run of each, tutti first when asked.
func (r *backfillRun) pair(ctx context.Context, tuttiFirst bool) (top, own float64, err error) {
	if tuttiFirst {
		if own, err = r.tutti(ctx); err != nil {
			return 0, 0, err
		}
	}
	if top, err = r.top(ctx, r.ceiling.connections); err != nil {
		return 0, 0, err
	}
	if !tuttiFirst {
		own, err = r.tutti(ctx)
	}
	return top, own, err
}

// top writes the ceiling's documents into a fresh index and gives the documents per second.
func (r *backfillRun) top(ctx context.Context, connections int) (_ float64, err error) {
	alias := r.b.newName("ceiling")
	if err := r.engine.make(ctx, alias, r.mapping); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.engine.drop(context.WithoutCancel(ctx), alias)) }()
	runtime.GC()
	took, err := r.ceiling.write(ctx, r.engine.client, alias, connections)
	if err != nil {
		return 0, err
	}
	return rate(r.ceiling.documents, took), r.engine.holds(ctx, alias, r.ceiling.documents)
}

// tutti brings the repository into a fresh index and gives the documents per second.
func (r *backfillRun) tutti(ctx context.Context) (_ float64, err error) {
	alias := r.b.newName("backfill")
	t, err := r.b.startTutti(ctx, r.upstream.URL(), r.b.ElasticsearchURL, alias)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.engine.drop(context.WithoutCancel(ctx), alias)) }()
	defer func() { err = errors.Join(err, t.stop(ctx)) }()
	runtime.GC()
	job, took, err := t.client.backfill(ctx, "")
	if err != nil {
		return 0, err
	}
	if err := indexedBy(job, len(r.corpus.analyses)); err != nil {
		return 0, err
	}
	if err := r.engine.holds(ctx, alias, len(r.corpus.analyses)); err != nil {
		return 0, err
	}
	if r.mapping == nil {
		r.mapping, err = r.engine.index.Mapping(ctx, alias)
	}
	return rate(len(r.corpus.analyses), took), err
}

func rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }
