package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/bench/direct"
	"tutti/internal/tools/bench/results"
	"tutti/internal/tools/bench/testbed"
)

const (
	// jobReads is the number of reads of a job, and of the list of jobs.
	jobReads = 10
	// endedJobs is the number of ended jobs of a list, ungroupedJobs that of those whose organizations are in no groups.
	endedJobs     = 50
	ungroupedJobs = 5
	// maxJobTime is the longest time of such a read, in milliseconds.
	maxJobTime = 50
)

// organizationNumbers are the numbers of organizations of the runs, at most Sizes.Organizations.
func organizationNumbers(b *testbed.Testbed) []int {
	numbers := slices.DeleteFunc([]int{300, 1000, 10_000}, func(n int) bool { return n >= b.Sizes.Organizations })
	return append(numbers, b.Sizes.Organizations)
}

// organizations measures runs of a repository with many small organizations.
func organizations(ctx context.Context, b *testbed.Testbed) (*results.Report, error) {
	report := &results.Report{What: fmt.Sprintf("a run of a repository whose organizations have one record each, by a fresh `tutti serve` with embedded "+
		"defaults, from the trigger to the job's success; the job is polled every %s; CPU and memory (RssAnon, read every %s) are those of the "+
		"server; then GET /jobs and GET /jobs/{id}, %d times each; and GET /jobs with %d ended jobs of as many organizations each, in groups and, for %d "+
		"of them, each by itself as earlier versions store them", direct.JobPollInterval, testbed.MemoryPollInterval, jobReads, endedJobs, ungroupedJobs)}
	for _, n := range organizationNumbers(b) {
		b.Say("organizations: %d", n)
		if err := organizationRun(ctx, b, report, n); err != nil {
			return nil, fmt.Errorf("%d organizations: %w", n, err)
		}
		if err := listEndedJobs(ctx, b, report, n); err != nil {
			return nil, fmt.Errorf("jobs of %d organizations: %w", n, err)
		}
	}
	return report, nil
}

// listEndedJobs measures the list of ended jobs with n organizations each.
func listEndedJobs(ctx context.Context, b *testbed.Testbed, report *results.Report, n int) (err error) {
	dir, err := b.NewFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	alias := b.NewName("jobs")
	const upstreamURL = "http://127.0.0.1:9" // nothing is fetched
	t, err := b.StartApp(ctx, dir, "", testbed.Settings(dir, upstreamURL, "", alias))
	if err != nil {
		return err
	}
	for i := 0; i < endedJobs && err == nil; i++ {
		err = storeEndedJob(ctx, t.App.Queue(), n, i >= ungroupedJobs)
	}
	t.Client.Close()
	if err := errors.Join(err, t.App.Stop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	server, err := b.StartServeIn(ctx, dir, upstreamURL, "", alias)
	if err != nil {
		return err
	}
	defer server.Stop()
	c := direct.NewClient(server.URL)
	defer c.Close()
	ms, err := timedCalls(ctx, c, "/jobs?limit="+strconv.Itoa(endedJobs))
	if err != nil {
		return err
	}
	results.AddLatencies(report, fmt.Sprintf("%s organizations: GET /jobs of %d ended jobs", results.Number(float64(n)), endedJobs), ms,
		[3]*results.Target{nil, results.AtMost(maxJobTime), nil})
	return nil
}

// storeEndedJob stores a job with n organizations that has ended, each organization by itself or in groups.
func storeEndedJob(ctx context.Context, q *queue.Queue, n int, grouped bool) error {
	job := core.Job{
		ID: uuid.Must(uuid.NewV7()).String(), Scope: core.ScopeRepository, Repository: direct.RepositoryCode, State: core.JobRunning,
		Cause: core.CauseREST, QueuedAt: time.Now().UTC(), ExpectedOrganizations: &n,
	}
	if err := q.Jobs().Create(ctx, job); err != nil {
		return err
	}
	runs := make([]core.OrganizationRun, n)
	last := 0
	for i := range runs {
		runs[i] = core.OrganizationRun{Organization: fmt.Sprintf("STUDY-%06d", i), State: core.JobSucceeded, LastPage: &last}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(testbed.PreparationConcurrency)
	for number, some := range slices.Collect(slices.Chunk(runs, 100)) {
		group.Go(func() error {
			if grouped {
				_, err := q.Groups().CreateGroup(groupCtx, job.ID, number, some)
				return err
			}
			for _, run := range some {
				if _, err := q.Jobs().CreateOrganization(groupCtx, job.ID, run); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := q.Jobs().Update(ctx, job.ID, func(j *core.Job) error {
		j.End(core.JobSucceeded, nil)
		return nil
	})
	return err
}

// timedCalls returns how long reads of a path take, in milliseconds.
func timedCalls(ctx context.Context, c *direct.Client, path string) ([]float64, error) {
	ms := make([]float64, jobReads)
	for i := range ms {
		began := time.Now()
		if _, err := c.Call(ctx, http.MethodGet, path, "", nil); err != nil {
			return nil, err
		}
		ms[i] = time.Since(began).Seconds() * 1e3
	}
	return ms, nil
}

func organizationRun(ctx context.Context, b *testbed.Testbed, report *results.Report, n int) error {
	from, err := b.StartUpstream(ctx, n, n)
	if err != nil {
		return err
	}
	defer from.Stop()
	server, err := b.StartServe(ctx, from.URL, "", b.NewName("organizations"))
	if err != nil {
		return err
	}
	defer server.Stop()
	c := direct.NewClient(server.URL)
	defer c.Close()
	before, err := testbed.ServerCPU(ctx, c)
	if err != nil {
		return err
	}
	var job gjson.Result
	var took time.Duration
	most, err := server.MaxMemoryDuring(ctx, func() (err error) {
		job, took, err = c.Backfill(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := direct.IndexedBy(job, n); err != nil {
		return err
	}
	after, err := testbed.ServerCPU(ctx, c)
	if err != nil {
		return err
	}
	name := func(what string) string { return results.Number(float64(n)) + " organizations: " + what }
	speed := results.Figure{Name: name("indexed a second"), Values: []float64{results.Rate(n, took)}}
	if n >= 10_000 {
		speed.Target = results.AtLeast(1000)
	}
	report.Add(
		results.Figure{Name: name("CPU of each, ms"), Values: []float64{(after - before) * 1e3 / float64(n)}, Target: results.AtMost(1)},
		speed,
		results.Figure{Name: name("memory at most, MB"), Values: []float64{most}, Target: results.AtMost(100)},
	)
	for _, read := range []struct{ name, path string }{{"GET /jobs", "/jobs"}, {"GET /jobs/{id}", "/jobs/" + job.Get("id").String()}} {
		ms, err := timedCalls(ctx, c, read.path)
		if err != nil {
			return err
		}
		results.AddLatencies(report, name(read.name), ms, [3]*results.Target{nil, results.AtMost(maxJobTime), nil})
	}
	return nil
}
