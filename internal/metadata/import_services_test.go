//go:build services

package metadata_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// TestImportDuringChange: an analysis that a server on the same PostgreSQL changes during its import is a conflict, and the import goes on.
func TestImportDuringChange(t *testing.T) {
	w := newFixture(t, storetest.OpenConfig(t, store.Config{URL: storetest.PostgresURL(t)}), metadata.Config{})
	analyses := make([]datamodel.ImportedAnalysis, 2)
	for i, id := range []string{"a", "b"} {
		analyses[i] = datamodel.ImportedAnalysis{
			ID: id, Study: S, State: datamodel.StateUnpublished, Type: datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}, Data: []byte(`{}`),
			UpdatedAt: time.Unix(1000, 0),
		}
	}
	run := func() map[string]datamodel.ImportResult {
		results := map[string]datamodel.ImportResult{}
		if err := w.Import(t.Context(), analyses, func(id string, did datamodel.ImportResult, _ string) { results[id] = did }); err != nil {
			t.Error(err)
		}
		return results
	}
	run()
	for i := range analyses {
		analyses[i].Data = []byte(`{"changed":true}`)
	}
	changed, commit := make(chan int, 1), make(chan struct{})
	var results map[string]datamodel.ImportResult
	var group errgroup.Group
	group.Go(func() error {
		return w.store.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			var pid int
			if err := tx.QueryRowContext(ctx, "UPDATE analysis SET updated_at = updated_at + 1 WHERE id = 'a' RETURNING pg_backend_pid()").Scan(&pid); err != nil {
				return err
			}
			changed <- pid
			<-commit
			return nil
		})
	})
	pid := <-changed
	group.Go(func() error { results = run(); return nil })
	for waiting := 0; waiting == 0; {
		err := w.store.Read().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", pid).Scan(&waiting)
		if err != nil {
			t.Error(err)
			break
		}
	}
	close(commit)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, results, map[string]datamodel.ImportResult{"a": datamodel.ImportConflict, "b": datamodel.ImportUpdated})
}
