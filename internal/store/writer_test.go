package store_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

// commits returns the number of commits and of the transactions that they committed.
func commits(t *testing.T, reg *prometheus.Registry) (count, transactions int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tutti_store_commit_transactions" {
			h := f.GetMetric()[0].GetHistogram()
			return int(h.GetSampleCount()), int(h.GetSampleSum())
		}
	}
	t.Fatal("no metric counts the commits")
	return 0, 0
}

// TestGroupCommit: waiting transactions are synced together; those that fail do not affect the others.
func TestGroupCommit(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := storetest.OpenConfig(t, store.Config{Dir: t.TempDir(), Metrics: store.NewMetrics(reg)})
	const callers = 100
	var wg sync.WaitGroup
	proceed := hold(t, s, &wg, insert("first"))
	for i := range callers {
		wg.Go(func() {
			id := fmt.Sprintf("s%02d", i)
			switch i % 4 {
			case 0:
				err := s.Update(t.Context(), insert(id+"x", id+"x"))
				wantConflict(t, err)
			case 1:
				err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_ = insert(id+"y")(ctx, tx)
					panic(id)
				})
				if core.CodeOf(err) != core.CodeInternal || !strings.Contains(err.Error(), "panic: "+id) {
					t.Errorf("a panic returned %v", err)
				}
			default:
				if err := s.Update(t.Context(), insert(id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for store.Waiting(s) < callers {
		runtime.Gosched()
	}
	proceed()
	wg.Wait()
	if got := studies(t, s); len(got) != callers/2+1 {
		t.Errorf("%d studies, want %d: %v", len(got), callers/2+1, got)
	}
	count, transactions := commits(t, reg)
	if transactions != callers/2+1 || count > callers/4 {
		t.Errorf("%d commits of %d transactions", count, transactions)
	}
}

// hold runs change in a transaction that keeps the writer busy until proceed is called, and returns once it runs.
func hold(t *testing.T, s *store.Store, wg *sync.WaitGroup, change func(context.Context, *store.Tx) error) (proceed func()) {
	t.Helper()
	begun, held := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) }) // a change may run again
	wg.Go(func() {
		err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			begin()
			<-held
			return change(ctx, tx)
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(held) }
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "adding a study: it already exists" {
		t.Errorf("got %v, want a conflict", err)
	}
}

// TestFullDisk: when the database cannot grow, transactions that do not fit fail, those that fit succeed, and with free space
// again all succeed.
func TestFullDisk(t *testing.T) {
	s := storetest.Open(t)
	limit := func(pages string) {
		statement(t, s, "PRAGMA max_page_count = "+pages)
	}
	var used int
	if err := s.Read().QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&used); err != nil {
		t.Fatal(err)
	}
	limit(fmt.Sprint(used + 4))
	var wg sync.WaitGroup
	proceed := hold(t, s, &wg, insert("first"))
	large := strings.Repeat("x", 1<<20)
	for i := range 20 {
		wg.Go(func() {
			if i == 10 {
				proceed()
			}
			if i%2 == 0 {
				if err := s.Update(t.Context(), insert(fmt.Sprintf("%02d", i))); err != nil {
					t.Errorf("a small transaction failed with a large one: %v", err)
				}
				return
			}
			err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_ = insert("before")(ctx, tx)
				err := insert(large)(ctx, tx)
				_ = insert("after")(ctx, tx) // the transaction was rolled back; this insert must not be committed on its own
				return err
			})
			if core.CodeOf(err) != core.CodeUnavailable || core.MessageOf(err) != "adding a study: the store's disk is full" {
				t.Errorf("a large transaction got %v", err)
			}
		})
	}
	wg.Wait()
	wantStudies(t, s, "00", "02", "04", "06", "08", "10", "12", "14", "16", "18", "first")
	limit("1000000")
	if err := s.Update(t.Context(), insert(large)); err != nil {
		t.Error(err)
	}
}

// TestCommitFails: a constraint that is checked at the commit rolls back only the transaction that violates it.
func TestCommitFails(t *testing.T) {
	s := storetest.Open(t)
	var wg sync.WaitGroup
	proceed := hold(t, s, &wg, insert("a"))
	broken := func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.ExecContext(ctx, "PRAGMA defer_foreign_keys = 1"); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body)
			VALUES ('x', 'none', 'x', 'x', 1, 1, x'00')`)
		return err
	}
	wg.Go(func() { wantError(t, s.Update(t.Context(), broken), core.CodeInternal, "committing a transaction") })
	wg.Go(func() {
		if err := s.Update(t.Context(), insert("b")); err != nil {
			t.Error(err)
		}
	})
	proceed()
	wg.Wait()
	wantError(t, s.Update(t.Context(), broken), core.CodeInternal, "committing a transaction")
	if err := s.Update(t.Context(), insert("c")); err != nil {
		t.Error(err)
	}
	wantStudies(t, s, "a", "b", "c")
}

func TestCancelledWhileWaiting(t *testing.T) {
	s := storetest.Open(t)
	var wg sync.WaitGroup
	proceed := hold(t, s, &wg, insert("first"))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() { waiting <- s.Update(ctx, insert("a")) }()
	cancel()
	wantError(t, <-waiting, core.CodeUnavailable, "waiting for the store") // although the writer is busy
	proceed()
	wg.Wait()
	wantStudies(t, s, "first")
}

// statement runs one statement in its own transaction.
func statement(t *testing.T, s *store.Store, query string, args ...any) {
	t.Helper()
	if err := s.Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := storetest.Open(b)
	seed := func(ctx context.Context, tx *store.Tx) error { return insert("S")(ctx, tx) }
	if err := s.Update(b.Context(), seed); err != nil {
		b.Fatal(err)
	}
	body := []byte(strings.Repeat("x", 2000))
	next := make(chan int, 64)
	go func() {
		defer close(next)
		for i := range b.N {
			next <- i
		}
	}()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range next {
				id := fmt.Sprintf("%08d", i)
				err := s.Update(b.Context(), func(ctx context.Context, tx *store.Tx) error {
					for _, q := range []struct {
						text string
						args []any
					}{
						{"INSERT INTO analysis (id, study, state, type_name, type_version, updated_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)", []any{id, "S", "UNPUBLISHED", "t", 1, i, body}},
						{"INSERT INTO analysis_file (study, md5, analysis_id, name) VALUES ($1, $2, $3, $4)", []any{"S", id, id, "a"}},
						{"INSERT INTO analysis_file (study, md5, analysis_id, name) VALUES ($1, $2, $3, $4)", []any{"S", id, id, "b"}},
						{"INSERT INTO outbox (id, study, analysis_id, created_at) VALUES ($1, $2, $3, $4)", []any{id, "S", id, i}},
					} {
						if _, err := tx.ExecContext(ctx, q.text, q.args...); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
