package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
)

const (
	// maxSlower is how much higher the 99th percentile of searches may be during a rebuild.
	maxSlower = 1.2
)

// readersRun is one rebuild beside searches.
type readersRun struct {
	// rate is in documents per second, before and during are the 99th percentiles of the searches, in milliseconds.
	rate, before, during float64
}

// readers measures what searches notice of a rebuild with each index.priority, and what that costs the rebuild.
func readers(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("%d searches a second for %s before a rebuild of the index and during it, with index.priority indexing and searches in turn",
		rebuildSearchRate, 2*b.Sizes.LoadFor)}
	for _, on := range []struct {
		what, url string
		records   int
	}{{"Elasticsearch", b.ElasticsearchURL, b.Sizes.Records}, {"embedded index", "", b.Sizes.EmbeddedRecords}} {
		if on.what == "Elasticsearch" && on.url == "" {
			report.Note("%s is skipped: it needs --elasticsearch", on.what)
			continue
		}
		corpus := standin.Generate(b.Sizes.Studies, on.records)
		run := func(priority string) func() (readersRun, error) {
			return func() (readersRun, error) {
				b.Say("readers: %s, %s records, index.priority: %s", on.what, results.Number(float64(on.records)), priority)
				return readersOf(ctx, b, corpus, on.url, priority)
			}
		}
		fast, kind, err := results.Alternate(b.Sizes.Pairs, run(config.PriorityIndexing), run(config.PrioritySearches))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", on.what, err)
		}
		what := fmt.Sprintf("%s, %s records: ", on.what, results.Number(float64(on.records)))
		rates := func(r readersRun) float64 { return r.rate }
		for _, arm := range []struct {
			priority string
			runs     []readersRun
			target   *results.Target
		}{{config.PriorityIndexing, fast, nil}, {config.PrioritySearches, kind, results.AtMost(maxSlower)}} {
			of := what + arm.priority + ": "
			report.Add(
				results.Figure{Name: of + "documents per second", Values: results.Select(arm.runs, rates)},
				results.Figure{Name: of + "p99 of searches before, ms", Values: results.Select(arm.runs, func(r readersRun) float64 { return r.before })},
				results.Figure{Name: of + "p99 during, ms", Values: results.Select(arm.runs, func(r readersRun) float64 { return r.during })},
				results.Figure{Name: of + "p99 during, times that of before", Values: results.Select(arm.runs, func(r readersRun) float64 { return r.during / r.before }), Target: arm.target},
			)
		}
		report.Add(results.Ratio(what+"rate of searches / indexing", nil, results.Select(fast, rates), results.Select(kind, rates)))
	}
	return report, nil
}

// readersOf fills an index, searches it, and rebuilds it while the searches go on.
func readersOf(ctx context.Context, b *testbed.Testbed, corpus *standin.Corpus, engineURL, priority string) (m readersRun, err error) {
	r := &rebuildRun{corpus: corpus}
	if r.upstream, err = corpus.Serve(); err != nil {
		return m, err
	}
	defer r.upstream.Close()
	dir, err := b.NewFolder()
	if err != nil {
		return m, err
	}
	alias := b.NewName("readers")
	variables := append(testbed.Settings(dir, r.upstream.URL(), engineURL, alias), testbed.Variables(map[string]string{"index.priority": priority})...)
	if r.tutti, err = b.StartApp(ctx, dir, alias, variables); err != nil {
		return m, err
	}
	defer func() {
		for _, name := range []string{alias, core.PreviousAlias(alias)} {
			if engineURL != "" {
				err = errors.Join(err, dropAlias(context.WithoutCancel(ctx), b, name))
			}
		}
	}()
	defer func() { err = errors.Join(err, r.tutti.Stop(ctx)) }()
	if _, _, err = r.tutti.Client.Backfill(ctx); err != nil {
		return m, err
	}
	if err = r.tutti.App.Index().Refresh(ctx, alias); err != nil {
		return m, err
	}
	if m.before, err = r.p99(ctx, b.Sizes.LoadFor/2); err == nil { // the first searches compile and load
		m.before, err = r.p99(ctx, 2*b.Sizes.LoadFor)
	}
	if err != nil {
		return m, err
	}
	done := make(chan error, 1)
	searching, stop := context.WithCancel(ctx)
	defer stop()
	r.searches = nil
	go func() { done <- r.search(ctx, searching) }()
	_, took, err := r.tutti.Client.Run(ctx, "?rebuild=true")
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return m, err
	}
	m.rate, m.during = results.Rate(len(corpus.Analyses), took), results.QuantileUp(r.searches, 0.99)
	if r.failed > 0 {
		err = fmt.Errorf("%d searches failed, the last: %s", r.failed, r.lastFail)
	}
	return m, err
}

// p99 searches for a time and returns the 99th percentile, in milliseconds.
func (r *rebuildRun) p99(ctx context.Context, within time.Duration) (float64, error) {
	loading, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r.searches = nil
	err := r.search(ctx, loading)
	return results.QuantileUp(r.searches, 0.99), err
}
