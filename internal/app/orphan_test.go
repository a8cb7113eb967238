package app

import (
	"testing"
	"time"

	"tutti/internal/config"
	"tutti/internal/core"
)

// TestOrphanedJobEnds: a job without a Request in the queue in two successive checks fails: with unknown_repository if its repository
// was removed from the configuration, else with interrupted. A job whose Request waits does not fail.
func TestOrphanedJobEnds(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte(`
server: {listen: "127.0.0.1:0"}
repositories: [{code: r, type: song, url: "http://127.0.0.1:1", indexName: i}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = t.TempDir()
	a, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := a.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	jobs := a.data.Queue.Jobs()
	for id, repository := range map[string]string{"orphan": "r", "removed": "elsewhere", "alive": "elsewhere"} {
		job := core.Job{ID: id, Scope: core.ScopeOrganization, Repository: repository, Organization: id, State: core.JobRunning, QueuedAt: time.Now()}
		if err := jobs.Create(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	err = a.data.Queue.Publish(ctx, core.Request{
		ID: "1", Kind: core.KindIndex, Scope: core.ScopePage, Repository: "elsewhere", Organization: "alive", JobID: "alive",
		Page: &core.Page{Limit: 2}, Cause: core.CauseREST,
	})
	if err != nil {
		t.Fatal(err)
	}
	suspects, err := a.jobs.Check(ctx, nil)
	if err != nil || len(suspects) != 2 {
		t.Fatalf("suspects %v, %v; want the orphans", suspects, err)
	}
	if job, err := jobs.Get(ctx, "orphan"); err != nil || job.State != core.JobRunning {
		t.Fatalf("after one look: %+v, %v", job, err)
	}
	if _, err = a.jobs.Check(ctx, suspects); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[string]string{"orphan": core.JobErrorInterrupted, "removed": core.JobErrorUnknownRepository} {
		if job, err := jobs.Get(ctx, id); err != nil || job.State != core.JobFailed || job.Error.Code != code {
			t.Errorf("%s: %+v, %v", id, job, err)
		}
	}
	if job, err := jobs.Get(ctx, "alive"); err != nil || job.State != core.JobRunning {
		t.Errorf("alive: %+v, %v", job, err)
	}
}
