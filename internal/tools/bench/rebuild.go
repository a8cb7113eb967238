package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
	"tutti/internal/tools/testkit"
)

const (
	// rebuildUpdateRate and rebuildSearchRate are the updates and the searches per second during a rebuild.
	rebuildUpdateRate = 200
	rebuildSearchRate = 20
	// traceRate is the traces per second during a rebuild, idleTraces the traces before it, one after the other.
	traceRate  = 5
	idleTraces = 200
	// maxTraceTime is the longest time of a trace, in milliseconds.
	maxTraceTime = 100
	// rebuildClients bounds the updates in flight.
	rebuildClients = 16
	// rebuildSettleTimeout bounds the time from a rebuild's end until all updates are indexed.
	rebuildSettleTimeout = time.Minute
)

// rebuildRun is a rebuild while records change and searches run.
type rebuildRun struct {
	tutti    *testbed.Tutti
	upstream *testkit.SongServer
	corpus   *standin.Corpus

	mu    sync.Mutex
	marks map[string]string // the newest mark of each changed analysis

	updates  int
	searches []float64 // milliseconds of each
	failed   int       // searches with an error or another total
	lastFail string
	traces   []float64 // milliseconds of each during the rebuild
	// parts are the milliseconds of each part of these traces, which are read at the same time.
	parts map[string][]float64
}

// traceParts are the members of a trace that have a time.
var traceParts = []string{"upstream", "queue", "jobs", "index", "deadLetters"}

// rebuild measures rebuilds of the index under live updates and searches.
func rebuild(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("a rebuild of the index, from the trigger to the job's success, while %d records a second change, with "+
		"a trigger each, %d searches a second must all find every record, and %d records a second are traced", rebuildUpdateRate, rebuildSearchRate, traceRate)}
	for _, on := range []struct {
		what, url string
		records   int
	}{{"Elasticsearch", b.ElasticsearchURL, b.Sizes.Records}, {"embedded index", "", b.Sizes.EmbeddedRecords}} {
		if on.what == "Elasticsearch" && on.url == "" {
			report.Note("%s is skipped: it needs --elasticsearch", on.what)
			continue
		}
		what := fmt.Sprintf("%s, %s records", on.what, results.Number(float64(on.records)))
		b.Say("rebuild: %s", what)
		if err := rebuilt(ctx, b, report, what, on.url, on.records); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return report, nil
}

func rebuilt(ctx context.Context, b *testbed.Testbed, report *results.Report, what, engineURL string, records int) (err error) {
	r := &rebuildRun{corpus: standin.Generate(b.Sizes.Studies, records), marks: map[string]string{}, parts: map[string][]float64{}}
	if r.upstream, err = r.corpus.Serve(); err != nil {
		return err
	}
	defer r.upstream.Close()
	alias := b.NewName("rebuild")
	if r.tutti, err = b.StartTutti(ctx, r.upstream.URL(), engineURL, alias); err != nil {
		return err
	}
	defer func() {
		for _, name := range []string{alias, core.PreviousAlias(alias)} {
			if engineURL != "" {
				err = errors.Join(err, dropAlias(context.WithoutCancel(ctx), b, name))
			}
		}
	}()
	defer func() { err = errors.Join(err, r.tutti.Stop(ctx)) }()
	_, filled, err := r.tutti.Client.Backfill(ctx)
	if err != nil {
		return err
	}
	if err := r.tutti.App.Index().Refresh(ctx, alias); err != nil {
		return err
	}
	idle := make([]float64, idleTraces)
	for n := range idle {
		if idle[n], err = r.traceOne(ctx, n); err != nil {
			return err
		}
	}
	clear(r.parts)
	took, err := r.underLoad(ctx)
	if err != nil {
		return err
	}
	lost, err := r.lost(ctx)
	if err != nil {
		return err
	}
	for _, f := range []results.Figure{
		{Name: "backfill without load, s", Values: []float64{filled.Seconds()}},
		{Name: "rebuild, s", Values: []float64{took.Seconds()}},
		{Name: "updates per second", Values: []float64{results.Rate(r.updates, took)}, Target: results.AtLeast(0.98 * rebuildUpdateRate)},
		{Name: "updates lost", Values: []float64{float64(lost)}, Target: results.AtMost(0)},
		{Name: "searches per second", Values: []float64{results.Rate(len(r.searches), took)}, Target: results.AtLeast(0.95 * rebuildSearchRate)},
		{Name: "searches failed", Values: []float64{float64(r.failed)}, Target: results.AtMost(0)},
	} {
		f.Name = what + ": " + f.Name
		report.Add(f)
	}
	if r.failed > 0 {
		report.Note("%s: the last failed search: %s", what, r.lastFail)
	}
	results.AddLatencies(report, what+": searches", r.searches, [3]*results.Target{})
	results.AddLatencies(report, what+": traces of a record before the rebuild", idle, [3]*results.Target{1: results.AtMost(maxTraceTime)})
	results.AddLatencies(report, what+": traces during the rebuild", r.traces, [3]*results.Target{1: results.AtMost(maxTraceTime)})
	for _, part := range traceParts {
		results.AddLatencies(report, what+": "+part+" of these", r.parts[part], [3]*results.Target{})
	}
	return nil
}

// underLoad rebuilds the index under updates and searches, and returns the time until the job's success.
func (r *rebuildRun) underLoad(ctx context.Context) (took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	load, _ := errgroup.WithContext(ctx)
	load.Go(func() error { return r.update(ctx, loading) })
	load.Go(func() error { return r.search(ctx, loading) })
	load.Go(func() error { return r.trace(ctx, loading) })
	_, took, err = r.tutti.Client.Run(ctx, "?rebuild=true")
	stop()
	return took, errors.Join(err, load.Wait())
}

// update changes records in turn at a steady rate until loading ends, and triggers each.
func (r *rebuildRun) update(ctx, loading context.Context) error {
	clients, ctx := errgroup.WithContext(ctx)
	clients.SetLimit(rebuildClients)
	for due := time.Now(); retry.Sleep(loading, time.Until(due)) == nil; due = due.Add(time.Second / rebuildUpdateRate) {
		a := r.corpus.Analyses[r.updates*31%len(r.corpus.Analyses)] // of all studies
		r.updates++
		clients.Go(func() error {
			r.mu.Lock() // so that the upstream's newest version has the newest mark
			mark, err := change(r.upstream, a)
			r.marks[a.ID] = mark
			r.mu.Unlock()
			if err != nil {
				return err
			}
			_, err = r.tutti.Client.Trigger(ctx, testbed.RecordPath(a))
			return err
		})
	}
	return clients.Wait()
}

// search searches at a steady rate until loading ends.
func (r *rebuildRun) search(ctx, loading context.Context) error {
	const query = `{"query":"{analysis{hits(first:1){total edges{node{analysisId}}} aggregations{studyId{buckets{key doc_count}}}}}"}`
	for due := time.Now(); retry.Sleep(loading, time.Until(due)) == nil; due = due.Add(time.Second / rebuildSearchRate) {
		began := time.Now()
		answer, err := r.tutti.Client.Call(ctx, http.MethodPost, "/"+r.tutti.Alias+"/graphql", "application/json", []byte(query))
		r.searches = append(r.searches, time.Since(began).Seconds()*1e3)
		if total := gjson.GetBytes(answer, "data.analysis.hits.total"); err != nil || total.Int() != int64(len(r.corpus.Analyses)) {
			r.failed++
			r.lastFail = fmt.Sprintf("%.300s %v", answer, err)
		}
	}
	return nil
}

// trace traces records at a steady rate until loading ends.
func (r *rebuildRun) trace(ctx, loading context.Context) error {
	for n, due := 0, time.Now(); retry.Sleep(loading, time.Until(due)) == nil; n, due = n+1, due.Add(time.Second/traceRate) {
		ms, err := r.traceOne(ctx, n)
		if err != nil {
			return err
		}
		r.traces = append(r.traces, ms)
	}
	return nil
}

// traceOne traces the n-th of records of all studies, and returns how long that took, in milliseconds.
func (r *rebuildRun) traceOne(ctx context.Context, n int) (ms float64, err error) {
	a := r.corpus.Analyses[n*61%len(r.corpus.Analyses)]
	began := time.Now()
	body, err := r.tutti.Client.Call(ctx, http.MethodGet, testbed.RecordPath(a), "", nil)
	ms = time.Since(began).Seconds() * 1e3
	for _, part := range traceParts {
		r.parts[part] = append(r.parts[part], gjson.GetBytes(body, part+".tookMillis").Float())
	}
	return ms, err
}

// lost waits until the index holds every update, and returns the number of records whose newest version it does not hold after
// rebuildSettleTimeout.
func (r *rebuildRun) lost(ctx context.Context) (int, error) {
	for began := time.Now(); ; {
		for id, mark := range r.marks {
			stored, found, err := r.tutti.App.Index().Get(ctx, r.tutti.Alias, id)
			if err != nil {
				return 0, err
			}
			if found && changedTo(stored.Source, mark) {
				delete(r.marks, id)
			}
		}
		if len(r.marks) == 0 || time.Since(began) > rebuildSettleTimeout {
			return len(r.marks), nil
		}
		if err := retry.Sleep(ctx, direct.JobPollInterval); err != nil {
			return 0, err
		}
	}
}
