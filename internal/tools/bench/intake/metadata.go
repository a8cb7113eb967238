package intake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/base/retry"
	"tutti/internal/core"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

const (
	// pageOfMetadata is the page size of the paging benchmark.
	pageOfMetadata = 100
	// coldOffsets is the number of pages read at random.
	coldOffsets = 100
)

// Metadata measures the built-in metadata repository: submissions on each store, paging through a long list, and the time from publishing
// an analysis to its being indexed.
func Metadata(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("the built-in metadata repository: POST /submit of 2 KB analyses with 2 files over %d connections for %s a run; "+
		"%s published analyses read page by page, %d rows each; publishing one by one on an idle system, from the answer "+
		"until a get by id finds it in the embedded index (polled every %s)",
		direct.Connections, b.Sizes.LoadFor, results.Number(float64(b.Sizes.Listed)), pageOfMetadata, testbed.DocumentPollInterval)}
	for _, on := range []struct {
		what, url string
		target    float64
	}{{"SQLite", "", 1500}, {"PostgreSQL", b.PostgresURL, 1000}} {
		if on.what == "PostgreSQL" && on.url == "" {
			report.Note("PostgreSQL is skipped: it needs --postgres")
			continue
		}
		if err := onStore(ctx, b, report, on.what, on.url, on.target); err != nil {
			return nil, fmt.Errorf("%s: %w", on.what, err)
		}
	}
	return report, nil
}

func onStore(ctx context.Context, b *testbed.Testbed, report *results.Report, what, url string, target float64) (err error) {
	t, err := startLocal(ctx, b, url)
	if t != nil {
		defer func() { err = errors.Join(err, t.Stop(ctx)) }()
	}
	if err != nil {
		return err
	}
	s := &submitter{tutti: t}
	if err := s.publishing(ctx, b, report, what); err != nil {
		return err
	}
	if err := s.submitting(ctx, b, report, what, target); err != nil {
		return err
	}
	return s.paging(ctx, b, report, what)
}

// submitter submits analyses, each different.
type submitter struct {
	tutti           *testbed.Tutti
	made, published atomic.Int64
}

// submitting measures the submission rate.
func (s *submitter) submitting(ctx context.Context, b *testbed.Testbed, report *results.Report, what string, target float64) error {
	l, err := direct.NewLoad(s.tutti.App.URL())
	if err != nil {
		return err
	}
	rates := results.Figure{Name: what + ": submissions a second", Target: results.AtLeast(target)}
	p99 := results.Figure{Name: what + ": submissions, p99, ms"}
	for i := range b.Sizes.Pairs + 1 {
		var failed atomic.Value
		got, err := l.Run(ctx, b.Sizes.LoadFor, func(int, int) []byte {
			body, err := localAnalysis(int(s.made.Add(1)))
			if err != nil {
				failed.Store(err)
				return nil
			}
			return l.Request(http.MethodPost, "/submit/"+localStudy, body)
		})
		if err == nil {
			err, _ = failed.Load().(error)
		}
		if err != nil {
			return err
		}
		if i == 0 { // to warm up
			continue
		}
		b.Say("metadata: %s, run %d: %s submissions a second", what, i, results.Number(got.PerSecond))
		rates.Values, p99.Values = append(rates.Values, got.PerSecond), append(p99.Values, results.QuantileUp(got.Ms, 0.99))
	}
	report.Add(rates, p99)
	return nil
}

// submit submits one analysis and returns its id.
func (s *submitter) submit(ctx context.Context) (string, error) {
	body, err := localAnalysis(int(s.made.Add(1)))
	if err != nil {
		return "", err
	}
	answer, err := s.tutti.Client.Call(ctx, http.MethodPost, "/submit/"+localStudy, "application/json", body)
	return gjson.GetBytes(answer, "analysisId").String(), err
}

func (s *submitter) publish(ctx context.Context, id string) error {
	_, err := s.tutti.Client.Call(ctx, http.MethodPut, "/studies/"+localStudy+"/analysis/publish/"+id, "", nil)
	if err == nil {
		s.published.Add(1)
	}
	return err
}

// publishing measures the time from the response of a publication until the analysis is indexed.
func (s *submitter) publishing(ctx context.Context, b *testbed.Testbed, report *results.Report, what string) error {
	var ms []float64
	for i := range b.Sizes.Triggers + testbed.UntimedTriggers {
		id, err := s.submit(ctx)
		if err == nil {
			err = s.publish(ctx, id)
		}
		if err != nil {
			return err
		}
		took, err := s.awaitIndexed(ctx, id)
		if err != nil {
			return err
		}
		if i >= testbed.UntimedTriggers {
			ms = append(ms, took.Seconds()*1e3)
		}
	}
	results.AddLatencies(report, what+": published to indexed", ms, [3]*results.Target{nil, results.AtMost(200), nil})
	return nil
}

func (s *submitter) awaitIndexed(ctx context.Context, id string) (time.Duration, error) {
	began := time.Now()
	for {
		_, found, err := s.tutti.App.Index().Get(ctx, s.tutti.Alias, id)
		if err != nil || found {
			return time.Since(began), err
		}
		if time.Since(began) > testbed.TriggerTimeout || retry.Sleep(ctx, testbed.DocumentPollInterval) != nil {
			return 0, core.NewError(core.CodeInternal, "a published analysis was not indexed")
		}
	}
}

// paging measures paging through a long list, and pages at random offsets.
func (s *submitter) paging(ctx context.Context, b *testbed.Testbed, report *results.Report, what string) error {
	b.Say("metadata: %s: publishing %d analyses", what, b.Sizes.Listed)
	if err := concurrently(ctx, b.Sizes.Listed, func(ctx context.Context, _ int) error {
		id, err := s.submit(ctx)
		if err == nil {
			err = s.publish(ctx, id)
		}
		return err
	}); err != nil {
		return err
	}
	if err := s.allIndexed(ctx); err != nil {
		return err
	}
	heap, err := s.readAll(ctx)
	if err != nil {
		return err
	}
	tenth := max(1, b.Sizes.Listed/pageOfMetadata/10)
	first, last, err := results.Alternate(b.Sizes.Pairs,
		func() (float64, error) { return s.pages(ctx, 0, tenth) },
		func() (float64, error) { return s.pages(ctx, int(s.published.Load())-tenth*pageOfMetadata, tenth) })
	if err != nil {
		return err
	}
	report.Add(
		results.Figure{Name: what + ": a page, the first tenth of the list, ms", Values: first},
		results.Figure{Name: what + ": a page, the last tenth of the list, ms", Values: last},
		results.Ratio(what+": a page of the last tenth / of the first", results.AtMost(1.3), first, last),
		results.Figure{Name: what + ": growth of the heap while reading the list, its ids for the check included, MB", Values: []float64{heap}},
	)
	var cold []float64
	r := rand.New(rand.NewPCG(5, 5)) //nolint:gosec // offsets of a benchmark
	for range coldOffsets {
		took, _, err := s.page(ctx, r.IntN(b.Sizes.Listed-pageOfMetadata))
		if err != nil {
			return err
		}
		cold = append(cold, took.Seconds()*1e3)
	}
	results.AddLatencies(report, what+": a page at a cold offset", cold, [3]*results.Target{nil, results.AtMost(20), nil})
	return nil
}

// concurrently calls do with each number below n, many at a time.
func concurrently(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(testbed.PreparationConcurrency)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// allIndexed waits until all published analyses are indexed, so that nothing else runs while pages are timed.
func (s *submitter) allIndexed(ctx context.Context) error {
	for {
		n, err := s.tutti.Count(ctx)
		if err != nil || n == s.published.Load() {
			return err
		}
		if err := retry.Sleep(ctx, direct.JobPollInterval); err != nil {
			return err
		}
	}
}

// pages returns the median time of a number of pages from an offset on, in milliseconds.
func (s *submitter) pages(ctx context.Context, offset, number int) (float64, error) {
	ms := make([]float64, number)
	for i := range ms {
		took, _, err := s.page(ctx, offset+i*pageOfMetadata)
		if err != nil {
			return 0, err
		}
		ms[i] = took.Seconds() * 1e3
	}
	return results.Figure{Values: ms}.Median(), nil
}

// readAll reads the list page by page, checks that each analysis occurs once, and returns the growth of the heap in MB.
func (s *submitter) readAll(ctx context.Context) (heap float64, err error) {
	before := testbed.HeapInUse()
	seen := make(map[string]struct{}, s.published.Load())
	for offset := 0; ; {
		_, answer, err := s.page(ctx, offset)
		if err != nil {
			return 0, err
		}
		for _, id := range answer.Get("analyses.#.analysisId").Array() {
			seen[strings.Clone(id.String())] = struct{}{}
		}
		rows := int(answer.Get("currentTotalAnalyses").Int())
		offset += rows
		if rows > 0 && offset < int(answer.Get("totalAnalyses").Int()) {
			continue
		}
		if want := int(s.published.Load()); len(seen) != want || offset != want {
			return 0, core.NewError(core.CodeInternal, fmt.Sprintf("received %d rows with %d analyses of %d", offset, len(seen), want))
		}
		return max(0, (testbed.HeapInUse()-before)/testbed.Megabyte), nil
	}
}

// page reads one page; only the numbers of the response are kept.
func (s *submitter) page(ctx context.Context, offset int) (time.Duration, gjson.Result, error) {
	began := time.Now()
	answer, err := s.tutti.Client.Call(ctx, http.MethodGet, "/studies/"+localStudy+"/analysis/paginated?analysisStates=PUBLISHED&limit="+
		strconv.Itoa(pageOfMetadata)+"&offset="+strconv.Itoa(offset), "", nil)
	took := time.Since(began)
	return took, gjson.ParseBytes(answer), err
}
