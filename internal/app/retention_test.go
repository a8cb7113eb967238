package app_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/queue/embedded"
	"tutti/internal/search/sets"
	"tutti/internal/store"
)

// TestExpiredSetsGo: a saved set that has expired is removed, whether or not another one is saved.
func TestExpiredSetsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	s, err := store.Open(t.Context(), store.Config{Dir: filepath.Join(w.dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	for name, saved := range map[string]time.Time{"old": time.Now().AddDate(-5, 0, 0), "new": time.Now()} {
		kept, err := sets.New(s, sets.Config{Now: func() time.Time { return saved }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Save(t.Context(), core.SavedSet{Owner: name, Catalogue: "c", Type: "analysis", Path: "studyId"}, []string{"S1"}); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.eventually(wait, func() (bool, string) {
		var left []string
		rows, err := s.Read().QueryContext(t.Context(), "SELECT owner FROM saved_set")
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var owner string
			if err := rows.Scan(&owner); err != nil {
				return false, err.Error()
			}
			left = append(left, owner)
		}
		return slices.Equal(left, []string{"new"}) && rows.Err() == nil, fmt.Sprint(left, rows.Err())
	})
	w.stop()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestJobsKept: only the newest 1,000 jobs that have ended are kept.
func TestJobsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: filepath.Join(w.dir, "queue")})
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.ConnectInProcess(t.Context(), server, queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 1005 {
		job := core.Job{
			ID: uuid.Must(uuid.NewV7()).String(), Repository: code, Scope: core.ScopeRepository, State: core.JobSucceeded,
			QueuedAt: time.Now(),
		}
		ids = append(ids, job.ID)
		if err := q.Jobs().Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.eventually(wait, func() (bool, string) {
		a, err := w.request("GET", "/jobs/"+ids[0]) // the last that is removed
		return err == nil && a.status == 404, fmt.Sprintf("%d, %v", a.status, err)
	})
	for i, id := range ids {
		if a, err := w.request("GET", "/jobs/"+id); i >= 5 && (err != nil || a.status != 200) || i < 5 && a.status != 404 {
			t.Fatalf("job %d: %d, %v", i, a.status, err)
		}
	}
}
