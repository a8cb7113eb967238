package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tutti/internal/base/retry"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
)

// demo is one run of the demo.
type demo struct {
	cfg    Config
	out    io.Writer
	song   *testkit.SongServer
	lyric  *testkit.LyricServer
	client *client
	// examples are filled at the end.
	examples *examples
}

func (d *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

// show indexes the repositories, changes some records and notifies tutti, and prints commands to try.
func (d *demo) show(ctx context.Context) error {
	jobID, err := d.index(ctx, 1, repositoryCode, analyses)
	if err != nil {
		return err
	}
	if _, err := d.index(ctx, 2, tabularCode, records); err != nil {
		return err
	}

	study := d.song.Studies()[0]
	listed := d.song.Analyses(study)
	d.say("3. %d analyses of %s change in the repository, one is unpublished, and each is triggered:", changedAnalyses, study)
	for i, record := range listed[:changedAnalyses+1] {
		if err := d.change(ctx, study, record, i == changedAnalyses); err != nil {
			return err
		}
	}
	if err := d.webhook(ctx); err != nil {
		return err
	}
	letter, stays, err := d.announceRejected(ctx, study)
	if err != nil {
		return err
	}
	published, err := d.builtIn(ctx)
	if err != nil {
		return err
	}
	if err := d.introspect(ctx); err != nil {
		return err
	}
	if err := d.search(ctx); err != nil {
		return err
	}
	if err := d.federated(ctx); err != nil {
		return err
	}
	if err := d.fill(ctx, study, listed, jobID, stays, published); err != nil {
		return err
	}
	d.finish(study, listed[0].ID, jobID, letter, published)
	return nil
}

// index indexes a whole repository with a progress bar.
func (d *demo) index(ctx context.Context, step int, code string, expected int) (jobID string, err error) {
	d.say("%d. Index a whole repository: POST /index/repository/%s", step, code)
	accepted, err := d.client.post(ctx, "/index/repository/"+code)
	if err != nil {
		return "", err
	}
	jobID = accepted.Get("jobId").String()
	job, err := d.watch(ctx, jobID, expected)
	if err != nil {
		return "", err
	}
	took := job.Get("endedAt").Time().Sub(job.Get("startedAt").Time())
	d.say("   %s: %d documents in %s, %d removed, %d rejected.\n", job.Get("state"), job.Get("totals.indexed").Int(),
		took.Round(time.Millisecond), job.Get("totals.removed").Int(), job.Get("totals.rejected").Int())
	return jobID, nil
}

// change changes an analysis in the repository, triggers it, and waits until the metrics show the outcome.
func (d *demo) change(ctx context.Context, study string, record dataset.Analysis, unpublish bool) error {
	outcome, what := "indexed", "changed"
	if unpublish {
		outcome, what = "removed", "unpublished"
		d.song.SetState(record.ID, "UNPUBLISHED")
	} else {
		body, err := sjson.SetBytes(record.Body, "updatedAt", time.Now().UTC().Format("2006-01-02T15:04:05.000000"))
		if err != nil {
			return fmt.Errorf("changing an analysis: %w", err)
		}
		if err := d.song.Put(study, body); err != nil {
			return err
		}
	}
	took, err := d.awaitOutcome(ctx, indexName, outcome, func() error {
		_, err := d.client.post(ctx, recordPath(study, record.ID))
		return err
	})
	if err != nil {
		return err
	}
	d.say("   %s %-11s → %s after %s", record.ID, what, outcome, took)
	return nil
}

func recordPath(study, id string) string {
	return "/index/repository/" + repositoryCode + "/organization/" + study + "/id/" + id
}

// awaitOutcome calls do and waits until the metrics show one more outcome of an index. It returns how long that took.
func (d *demo) awaitOutcome(ctx context.Context, index, outcome string, do func() error) (time.Duration, error) {
	before, err := d.client.documents(ctx, index, outcome)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	for {
		now, err := d.client.documents(ctx, index, outcome)
		if err != nil {
			return 0, err
		}
		if now > before {
			return time.Since(began).Round(time.Millisecond), nil
		}
		if err := retry.Sleep(ctx, 2*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// watch draws a bar for a job until it has ended; where it cannot be redrawn, only the last one.
func (d *demo) watch(ctx context.Context, id string, expected int) (gjson.Result, error) {
	last, redraws := "", isTerminal(d.out)
	for {
		job, err := d.client.get(ctx, "/jobs/"+id)
		if err != nil {
			return job, err
		}
		line := progressLine(job, expected)
		if redraws && line != last {
			_, _ = fmt.Fprintf(d.out, "\r   %s", line)
			last = line
		}
		if ended := job.Get("endedAt"); ended.Exists() && ended.Type != gjson.Null {
			if !redraws {
				_, _ = fmt.Fprintf(d.out, "   %s", line)
			}
			d.say("")
			return job, nil
		}
		if err := retry.Sleep(ctx, 20*time.Millisecond); err != nil {
			return job, err
		}
	}
}

// isTerminal reports whether w is a device of characters, such as a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine draws one bar over all organizations, for a terminal of 80 columns.
func progressLine(job gjson.Result, expected int) string {
	const width = 40
	fetched := job.Get("totals.fetched").Int()
	filled := min(width, int(fetched)*width/expected)
	return fmt.Sprintf("[%s%s] %4d of %d fetched, %s", strings.Repeat("█", filled), strings.Repeat("·", width-filled),
		fetched, expected, job.Get("state"))
}

// commands returns commands to try; each works after the previous ones.
func (d *demo) commands(study, id, jobID, letter, published string) []string {
	base := d.client.base
	return []string{
		"curl " + base + "/dead-letters/" + letter,
		"curl -X POST " + base + "/dead-letters/" + letter + "/retry",
		"curl -X POST " + base + recordPath(study, id),
		"curl -X POST " + base + "/index/repository/" + repositoryCode + "/organization/" + study,
		"curl " + base + "/jobs",
		"curl " + base + "/jobs/" + jobID + "/events",
		"curl -X DELETE " + base + recordPath(study, id),
		"curl " + base + "/introspection",
		"curl " + base + "/introspection/" + catalogueClinical,
		"curl " + base + "/introspection/sqon",
		graphqlCommand(base, catalogueAnalyses, facetQuery),
		graphqlCommand(base, catalogueAnalyses, hitsQuery),
		graphqlCommand(base, catalogueAnalyses, networkQuery),
		"curl -X POST " + base + "/" + catalogueAnalyses + "/download -H 'Content-Type: application/json' -d '" + downloadParams + "'",
		"curl " + base + "/ready",
		"curl -s " + base + "/metrics | grep ^tutti_",
		"curl " + d.song.URL() + "/studies/" + study + "/analysis/" + id,
		"curl '" + d.lyric.URL() + "/data/category/" + d.lyric.CategoryID() + "/organization/CLINIC-1?view=compound&page=1&pageSize=1'",
		"curl '" + base + "/schemas?hideSchema=true'",
		"curl " + base + "/schemas/variant_call",
		"curl " + base + "/studies/" + builtInStudy + "/analysis/" + published,
		"curl -X PUT " + base + "/studies/" + builtInStudy + "/analysis/unpublish/" + published,
		"TUTTI_SERVER=" + base + " " + d.cfg.Command + " schemas list",
		"TUTTI_SERVER=" + base + " " + d.cfg.Command + " catalogues show " + catalogueAnalyses,
		d.cfg.Command + " catalogues check " + filepath.Join(d.cfg.DataDir, catalogueFolder),
		"TUTTI_SERVER=" + base + " " + d.cfg.Command + " index " + tabularCode + " --wait",
		"TUTTI_SERVER=" + base + " " + d.cfg.Command + " dead-letters list",
	}
}

// finish prints commands that work while the demo runs.
func (d *demo) finish(study, id, jobID, letter, published string) {
	base := d.client.base
	d.say("\nTry, in another terminal:")
	for _, command := range d.commands(study, id, jobID, letter, published) {
		d.say("  %s", command)
	}
	d.say("The console, to look at all of this in a browser: %s/", base)
	d.say("Every route with its inputs, to try in a browser: %s/api-docs", base)
}
