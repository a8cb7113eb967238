package housekeeping

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
	"tutti/internal/queue/jobs"
)

// progressJobs is how many of the newest jobs are searched for the newest one of each repository.
const progressJobs = 200

const progressHelp = "Ratio of fetched to expected records of the newest started run of a repository, from 0 to 1; absent until all its organizations have been counted."

// jobReader lists jobs.
type jobReader interface {
	List(ctx context.Context, f core.JobFilter) ([]core.Job, string, error)
}

// sumReader sums the organizations of jobs.
type sumReader interface {
	Sum(ctx context.Context, jobID string) (jobsum.Sum, error)
}

var (
	_ jobReader = (*jobs.Jobs)(nil)
	_ sumReader = (*jobs.Groups)(nil)
)

// jobProgress measures the progress of the newest job of each repository. It is not safe for concurrent use.
type jobProgress struct {
	ratio *prometheus.GaugeVec
	// ended holds the id of each repository's job that was measured after its end.
	ended map[string]string
}

func newJobProgress() *jobProgress {
	return &jobProgress{
		ratio: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tutti_job_progress_ratio",
			Help: progressHelp,
		}, []string{"repository"}),
		ended: make(map[string]string),
	}
}

// measure sets the metric of every repository that has a started job.
func (p *jobProgress) measure(ctx context.Context, jobs jobReader, sums sumReader) error {
	newest, _, err := jobs.List(ctx, core.JobFilter{Limit: progressJobs})
	if err != nil {
		return err
	}
	measured := make(map[string]bool)
	for i := range newest {
		job := &newest[i]
		if job.State == core.JobQueued || job.Scope == core.ScopeRetry || measured[job.Repository] {
			continue
		}
		measured[job.Repository] = true
		if p.ended[job.Repository] == job.ID {
			continue
		}
		sum, err := sums.Sum(ctx, job.ID)
		if err != nil {
			return err
		}
		p.set(job, sum)
	}
	return nil
}

func (p *jobProgress) set(job *core.Job, sum jobsum.Sum) {
	delete(p.ended, job.Repository)
	if job.State.Final() {
		p.ended[job.Repository] = job.ID
	}
	totals, counted := sum.TotalsOf(job)
	switch {
	case !counted:
		p.ratio.DeleteLabelValues(job.Repository)
	case totals.Expected == 0:
		p.ratio.WithLabelValues(job.Repository).Set(1)
	default:
		p.ratio.WithLabelValues(job.Repository).Set(min(1, float64(totals.Fetched)/float64(totals.Expected)))
	}
}
