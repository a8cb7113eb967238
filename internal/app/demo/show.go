package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tutti/internal/testkit"
)

// demo is one showing.
type demo struct {
	cfg      Config
	out      io.Writer
	upstream *testkit.SongServer
	client   *client
}

func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

// show indexes the repository, changes some analyses and triggers them, and says how to look at it all.
func (d *demo) show(ctx context.Context) error {
	d.say("1. Index the whole repository: POST /index/repository/%s", repositoryCode)
	accepted, err := d.client.post(ctx, "/index/repository/"+repositoryCode)
	if err != nil {
		return err
	}
	jobID := accepted.Get("jobId").String()
	job, err := d.watch(ctx, jobID)
	if err != nil {
		return err
	}
	took := job.Get("endedAt").Time().Sub(job.Get("startedAt").Time())
	d.say("   %s: %d documents in %s, %d removed, %d rejected.\n", job.Get("state"), job.Get("totals.indexed").Int(),
		took.Round(time.Millisecond), job.Get("totals.removed").Int(), job.Get("totals.rejected").Int())

	study := d.upstream.Studies()[0]
	records := d.upstream.Analyses(study)
	d.say("2. %d analyses of %s change at the repository, one is unpublished, and each is triggered:", changedAnalyses, study)
	for i, record := range records[:changedAnalyses+1] {
		if err := d.change(ctx, study, record, i == changedAnalyses); err != nil {
			return err
		}
	}
	d.finish(study, records[0].ID, jobID)
	return nil
}

// change alters an analysis at the repository, triggers it, and waits until the metrics show the outcome.
func (d *demo) change(ctx context.Context, study string, record testkit.Analysis, unpublish bool) error {
	outcome, what := "indexed", "changed"
	if unpublish {
		outcome, what = "removed", "unpublished"
		d.upstream.SetState(record.ID, "UNPUBLISHED")
	} else {
		body, err := sjson.SetBytes(record.Body, "updatedAt", time.Now().UTC().Format("2006-01-02T15:04:05.000000"))
		if err != nil {
			return fmt.Errorf("changing an analysis: %w", err)
		}
		if err := d.upstream.Put(study, body); err != nil {
			return err
		}
	}
	before, err := d.client.documents(ctx, outcome)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := d.client.post(ctx, "/index/repository/"+repositoryCode+"/organization/"+study+"/id/"+record.ID); err != nil {
		return err
	}
	for {
		now, err := d.client.documents(ctx, outcome)
		if err != nil {
			return err
		}
		if now > before {
			d.say("   %s %-11s → %s after %s", record.ID, what, outcome, time.Since(began).Round(time.Millisecond))
			return nil
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

// watch draws a bar for each organization of a job until the job has ended.
func (d *demo) watch(ctx context.Context, id string) (gjson.Result, error) {
	last := ""
	for {
		job, err := d.client.get(ctx, "/jobs/"+id)
		if err != nil {
			return job, err
		}
		if line := progressLine(job); line != last {
			_, _ = fmt.Fprintf(d.out, "\r   %s", line)
			last = line
		}
		if ended := job.Get("endedAt"); ended.Exists() && ended.Type != gjson.Null {
			d.say("")
			return job, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return job, err
		}
	}
}

// progressLine draws one bar over all organizations, for a terminal of 80 columns.
func progressLine(job gjson.Result) string {
	const width = 40
	fetched := job.Get("totals.fetched").Int()
	filled := min(width, int(fetched*width/analyses))
	return fmt.Sprintf("[%s%s] %4d of %d fetched, %s", strings.Repeat("█", filled), strings.Repeat("·", width-filled),
		fetched, analyses, job.Get("state"))
}

// finish prints commands that work while the demo runs.
func (d *demo) finish(study, id, jobID string) {
	base := d.client.base
	d.say("\nTry, in another terminal:")
	for _, command := range []string{
		"curl -X POST " + base + "/index/repository/" + repositoryCode + "/organization/" + study + "/id/" + id,
		"curl -X POST " + base + "/index/repository/" + repositoryCode + "/organization/" + study,
		"curl " + base + "/jobs",
		"curl " + base + "/jobs/" + jobID,
		"curl -X DELETE " + base + "/index/repository/" + repositoryCode + "/organization/" + study + "/id/" + id,
		"curl " + base + "/ready",
		"curl -s " + base + "/metrics | grep ^tutti_",
		"curl " + base + "/openapi.json",
		"curl " + d.upstream.URL() + "/studies/" + study + "/analysis/" + id,
	} {
		d.say("  %s", command)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
