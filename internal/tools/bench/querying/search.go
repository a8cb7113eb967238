package querying

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/standin"
	"tutti/internal/tools/bench/testbed"
)

// searchConnections are the numbers of connections for the requests of a page.
func searchConnections() []int { return []int{1, 4, 16} }

// Search compares pages of a portal requested with tutti's GraphQL and with an expert's hand-written search on the
// same engine.
func Search(ctx context.Context, b *testbed.Testbed) (_ *results.Report, err error) {
	e, err := direct.NewEngine(ctx, b.ElasticsearchURL)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	repository, err := b.StartUpstream(ctx, b.Sizes.Studies, b.Sizes.Searched)
	if err != nil {
		return nil, err
	}
	defer repository.Stop()
	r := &searchRun{b: b, engine: e, alias: b.NewName("search")}
	if r.server, err = b.StartServe(ctx, repository.URL, b.ElasticsearchURL, r.alias); err != nil {
		return nil, err
	}
	defer r.server.Stop()
	defer func() { err = errors.Join(err, e.Drop(context.WithoutCancel(ctx), r.alias)) }()
	r.client = direct.NewClient(r.server.URL)
	defer r.client.Close()
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	report := &results.Report{What: fmt.Sprintf("pages of a portal over %d analyses: tutti's GraphQL, as a separate process, compared with the "+
		"same content from a hand-written search on the same engine; alternating runs of %s, over 1, 4 and 16 connections", b.Sizes.Searched, b.Sizes.LoadFor)}
	for _, p := range pages() {
		if err := r.compare(ctx, report, p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return report, nil
}

// searchRun is a server and an engine with the same documents.
type searchRun struct {
	b      *testbed.Testbed
	engine *direct.Engine
	alias  string
	server *testbed.Child
	client *direct.Client
}

// fill indexes the analyses and merges the index to at most five segments, as in a settled index.
func (r *searchRun) fill(ctx context.Context) error {
	r.b.Say("search: indexing %d analyses", r.b.Sizes.Searched)
	job, _, err := r.client.Backfill(ctx)
	if err != nil {
		return err
	}
	if err := direct.IndexedBy(job, r.b.Sizes.Searched); err != nil {
		return err
	}
	if _, err := r.engine.Client.Call(ctx, http.MethodPost, "/"+r.alias+"/_forcemerge?max_num_segments=5", "", nil); err != nil {
		return err
	}
	return r.engine.Holds(ctx, r.alias, r.b.Sizes.Searched)
}

// compare measures one page, after checking that both requests return the same.
func (r *searchRun) compare(ctx context.Context, report *results.Report, p page) error {
	if err := r.same(ctx, p); err != nil {
		return err
	}
	own, hand, err := r.loads()
	if err != nil {
		return err
	}
	for _, connections := range searchConnections() {
		r.b.Say("search: %s over %d connections", p.name, connections)
		if _, err := r.leg(ctx, own, p, connections, true); err != nil { // warm-up
			return err
		}
		if _, err := r.leg(ctx, hand, p, connections, false); err != nil {
			return err
		}
		hands, owns, err := results.Alternate(r.b.Sizes.Pairs,
			func() (pageRun, error) { return r.timed(ctx, hand, p, connections, false) },
			func() (pageRun, error) { return r.timed(ctx, own, p, connections, true) })
		if err != nil {
			return err
		}
		name := func(what string) string { return fmt.Sprintf("%s, %d connections: %s", p.name, connections, what) }
		target, cpu := p.target, (*results.Target)(nil)
		if connections == searchConnections()[2] {
			target = p.many
		}
		if strings.HasPrefix(p.name, "20 hits") {
			cpu = results.AtMost(0.2)
		}
		rates, p99 := func(l pageRun) float64 { return l.rate }, func(l pageRun) float64 { return l.p99 }
		report.Add(
			results.Figure{Name: name("engine, answers/s"), Values: results.Select(hands, rates)},
			results.Figure{Name: name("tutti, answers/s"), Values: results.Select(owns, rates)},
			results.Ratio(name("tutti / engine"), target, results.Select(hands, rates), results.Select(owns, rates)),
			results.Ratio(name("tutti's p99 / engine's"), results.AtMost(1.3), results.Select(hands, p99), results.Select(owns, p99)),
			results.Figure{Name: name("tutti's own CPU, ms an answer"), Target: cpu, Values: results.Select(owns, func(l pageRun) float64 { return l.cpu })},
		)
	}
	return nil
}

// pageRun is one run of requests for a page.
type pageRun struct {
	// rate is in answers per second, p99 in milliseconds, and cpu, that of the server, in milliseconds per answer.
	rate, p99, cpu float64
}

// timed is leg with the server's CPU time.
func (r *searchRun) timed(ctx context.Context, l direct.Load, p page, connections int, tutti bool) (pageRun, error) {
	before, err := testbed.ServerCPU(ctx, r.client)
	if err != nil {
		return pageRun{}, err
	}
	got, err := r.leg(ctx, l, p, connections, tutti)
	if err != nil {
		return pageRun{}, err
	}
	after, err := testbed.ServerCPU(ctx, r.client)
	return pageRun{rate: got.PerSecond, p99: results.Quantile(got.Ms, 0.99), cpu: (after - before) * 1e3 / float64(len(got.Ms))}, err
}

// loads returns the loads of the two servers.
func (r *searchRun) loads() (own, hand direct.Load, err error) {
	if own, err = direct.NewLoad(r.server.URL); err != nil {
		return own, hand, err
	}
	hand, err = direct.NewLoad(r.engine.Client.Base)
	return own, hand, err
}

// leg sends requests to one of the two servers for Sizes.LoadFor.
func (r *searchRun) leg(ctx context.Context, l direct.Load, p page, connections int, tutti bool) (direct.Result, error) {
	sources := make([]*rand.Rand, connections)
	for i := range sources {
		sources[i] = rand.New(rand.NewPCG(standin.Seed, rand.Uint64())) // no request is repeated, so that caches have no effect
	}
	return l.RunConnections(ctx, connections, r.b.Sizes.LoadFor, func(connection, _ int) []byte {
		bound := p.bound(sources[connection])
		if tutti {
			return l.Request(method, "/"+r.alias+"/graphql", p.request(bound))
		}
		return l.Typed(method, "/"+r.alias+p.path, p.contentType(), p.body(bound))
	})
}

// same checks that both requests of a page return the same.
func (r *searchRun) same(ctx context.Context, p page) error {
	bound := p.bound(rand.New(rand.NewPCG(standin.Seed, 1)))
	mine, err := r.client.Call(ctx, method, "/"+r.alias+"/graphql", "application/json", p.request(bound))
	if err != nil {
		return err
	}
	if problem := gjson.GetBytes(mine, "errors"); problem.Exists() {
		return core.NewError(core.CodeInternal, "the server answered "+problem.Raw)
	}
	theirs, err := r.engine.Client.Call(ctx, method, "/"+r.alias+p.path, p.contentType(), p.body(bound))
	if err != nil {
		return err
	}
	a, b := summary(mine), handwrittenSummary(theirs)
	if !slices.Equal(a, b) || len(a) == 0 {
		return core.NewError(core.CodeInternal, fmt.Sprintf("the two ways differ: %.2000v and %.2000v", a, b))
	}
	return nil
}

// summary returns the content of a GraphQL response, line by line.
func summary(answer []byte) []string {
	data := gjson.GetBytes(answer, "data.analysis")
	var lines []string
	for name, facet := range data.Get("aggregations").Map() {
		for _, bucket := range facet.Get("buckets").Array() {
			lines = append(lines, fmt.Sprintf("%s=%s: %s", strings.ReplaceAll(name, "__", "."), bucket.Get("key"), bucket.Get("doc_count")))
		}
	}
	slices.Sort(lines)
	if total := data.Get("hits.total"); total.Exists() {
		lines = append(lines, "total "+total.Raw)
	}
	for _, edge := range data.Get("hits.edges").Array() {
		lines = append(lines, fmt.Sprintf("%s %s %d", edge.Get("node.analysisId"), edge.Get("node.workflow.genomeBuild"),
			len(edge.Get("node.files.hits.edges").Array())))
	}
	return lines
}

// handwrittenSummary is summary for the engine's response.
func handwrittenSummary(answer []byte) []string {
	answers := gjson.GetBytes(answer, "responses").Array()
	if len(answers) == 0 {
		answers = []gjson.Result{gjson.ParseBytes(answer)}
	}
	var lines []string
	for _, one := range answers {
		facets := one.Get("aggregations").Map()
		for _, name := range slices.Sorted(maps.Keys(facets)) {
			lines = append(lines, bucketsOf(name, facets[name])...)
		}
	}
	slices.Sort(lines)
	if total := answers[0].Get("hits.total.value"); total.Exists() {
		lines = append(lines, "total "+total.Raw)
	}
	for _, hit := range answers[0].Get("hits.hits").Array() {
		lines = append(lines, fmt.Sprintf("%s %s %d", hit.Get("_source.analysisId"), hit.Get("_source.workflow.genomeBuild"),
			len(hit.Get("_source.files").Array())))
	}
	return lines
}

// bucketsOf returns the buckets of a facet at any depth.
func bucketsOf(name string, facet gjson.Result) []string {
	for _, inner := range []string{"values", "elements", "narrowed"} {
		if found := facet.Get(inner); found.Exists() {
			return bucketsOf(name, found)
		}
	}
	var lines []string
	for _, bucket := range facet.Get("buckets").Array() {
		count := bucket.Get("doc_count")
		if documents := bucket.Get("documents.doc_count"); documents.Exists() {
			count = documents
		}
		lines = append(lines, fmt.Sprintf("%s=%s: %s", name, bucket.Get("key"), count))
	}
	return lines
}
