package ingest_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/ingest"
	"tutti/internal/core"
)

// runnerFake records when runs were started.
type runnerFake struct {
	mu   sync.Mutex
	runs []time.Time
	run  func(n int) error // before the n-th try, from 0
	n    int
}

func (r *runnerFake) Run(
	_ context.Context, scope core.Scope, repository, organization string, flags core.RunFlags, cause core.Cause, _ string,
) (core.Job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.n
	r.n++
	if scope != core.ScopeRepository || repository != "song.ca" || organization != "" || flags != (core.RunFlags{Difference: true}) || cause != core.CauseReconcile {
		return core.Job{}, core.NewError(core.CodeInternal, "not the run of a reconciler")
	}
	if r.run != nil {
		if err := r.run(n); err != nil {
			return core.Job{}, err
		}
	}
	r.runs = append(r.runs, time.Now())
	return core.Job{}, nil
}

func (r *runnerFake) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.runs)
}

// reconciler starts a Reconciler that runs song.ca once an hour; stop stops it.
func reconciler(t *testing.T, runner ingest.Runner, cells core.Cells) (stop func()) {
	t.Helper()
	r, err := ingest.NewReconciler(runner, cells, map[string]time.Duration{"song.ca": time.Hour, "song.jp": 0},
		ingest.ReconcilerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	return func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestReconcilerRunsOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, cells := &runnerFake{}, &queueFake{}
		for range 3 {
			defer reconciler(t, runner, cells)()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 1 {
			t.Fatalf("%d runs in the first minute, want one at the start", n)
		}
		time.Sleep(58 * time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 1 {
			t.Fatalf("%d runs before the period has ended", n)
		}
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if n := runner.count(); n < 23 || n > 24 {
			t.Errorf("%d runs in a day", n)
		}
		for i := 1; i < len(runner.runs); i++ {
			if gap := runner.runs[i].Sub(runner.runs[i-1]); gap < time.Hour || gap > time.Hour+time.Minute {
				t.Errorf("run %d is %v after the one before", i, gap)
			}
		}
	})
}

// racingCells lets n processes read a cell before one of them may write it.
type racingCells struct {
	core.Cells
	mu   sync.Mutex
	n    int
	read chan struct{}
}

func (c *racingCells) Cell(ctx context.Context, key string) (string, uint64, error) {
	value, revision, err := c.Cells.Cell(ctx, key)
	c.mu.Lock()
	c.n--
	if c.n == 0 {
		close(c.read)
	}
	c.mu.Unlock()
	<-c.read
	return value, revision, err
}

// TestReconcilersRace: of processes that find a run due at the same time, one starts it.
func TestReconcilersRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &runnerFake{}
		cells := &racingCells{Cells: &queueFake{}, n: 3, read: make(chan struct{})}
		for range 3 {
			defer reconciler(t, runner, cells)()
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 1 {
			t.Errorf("%d runs, want one", n)
		}
	})
}

func TestReconcilerKnowsTheLastRunAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner, cells := &runnerFake{}, &queueFake{}
		stop := reconciler(t, runner, cells)
		time.Sleep(30 * time.Minute)
		stop()
		stop = reconciler(t, runner, cells)
		defer func() { stop() }()
		time.Sleep(29 * time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 1 {
			t.Fatalf("%d runs: the restart started one early", n)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 2 {
			t.Errorf("%d runs after the period, want 2", n)
		}
		stop()
		time.Sleep(5 * time.Hour) // no runs
		stop = reconciler(t, runner, cells)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := runner.count(); n != 3 {
			t.Errorf("%d runs after a long pause, want one at once", n)
		}
	})
}

func TestReconcilerTriesAgain(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the queue does not answer")
	t.Run("a run that is refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			runner := &runnerFake{run: func(n int) error {
				if n < 5 {
					return down
				}
				return nil
			}}
			cells := &queueFake{}
			defer reconciler(t, runner, cells)()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 || runner.n != 6 {
				t.Errorf("%d runs in %d tries, want one in six", n, runner.n)
			}
		})
	})
	t.Run("a cell that cannot be read or set", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			runner, cells := &runnerFake{}, &queueFake{}
			reads, writes := 0, 0
			cells.cell = func(string) error {
				if reads++; reads < 3 {
					return down
				}
				return nil
			}
			cells.setCell = func(string, string) error {
				if writes++; writes < 3 {
					return down
				}
				return nil
			}
			defer reconciler(t, runner, cells)()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	})
	t.Run("another process takes over what was given back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cells := &queueFake{}
			stop := reconciler(t, &runnerFake{run: func(int) error { return down }}, cells)
			time.Sleep(10 * time.Minute)
			stop()
			runner := &runnerFake{}
			defer reconciler(t, runner, cells)()
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 {
				t.Errorf("%d runs", n)
			}
		})
	})
}

// TestReconcilerContinuesAClaim: a process that ends between its claim and its run skips no period, and one that could not store the time
// of its run starts no second one.
func TestReconcilerContinuesAClaim(t *testing.T) {
	t.Run("the process ended before the run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cells, ended := &queueFake{}, make(chan struct{})
			dead := &runnerFake{run: func(int) error {
				<-ended
				return core.NewError(core.CodeUnavailable, "the process has ended")
			}}
			stopDead := reconciler(t, dead, cells)
			time.Sleep(time.Minute)
			synctest.Wait()
			if value, _, err := cells.Cell(t.Context(), "reconcile.c29uZy5jYQ"); err != nil || !strings.HasPrefix(value, "starting ") {
				t.Fatalf("%q, %v", value, err)
			}
			runner := &runnerFake{}
			for range 3 {
				defer reconciler(t, runner, cells)()
			}
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 {
				t.Errorf("%d runs, want that one process takes over the claim", n)
			}
			close(ended)
			stopDead()
			time.Sleep(55 * time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 {
				t.Errorf("%d runs within the period", n)
			}
		})
	})
	t.Run("the time of the run was not stored at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			runner, cells, writes := &runnerFake{}, &queueFake{}, 0
			cells.setCell = func(string, string) error {
				if writes++; writes == 2 || writes == 3 {
					return core.NewError(core.CodeUnavailable, "the queue does not answer")
				}
				return nil
			}
			defer reconciler(t, runner, cells)()
			time.Sleep(59 * time.Minute)
			synctest.Wait()
			if n := runner.count(); n != 1 || writes != 4 {
				t.Errorf("%d runs, %d writes", n, writes)
			}
		})
	})
}

func TestReconcilerIgnoresAnInvalidLastRun(t *testing.T) {
	for name, value := range map[string]string{
		"far in the future": "2999-01-01T00:00:00Z", "no time": "yesterday",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runner, cells := &runnerFake{}, &queueFake{}
				if err := cells.SetCell(t.Context(), "reconcile.c29uZy5jYQ", value, 0); err != nil {
					t.Fatal(err)
				}
				defer reconciler(t, runner, cells)()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := runner.count(); n != 1 {
					t.Errorf("%d runs", n)
				}
				value, _, _ := cells.Cell(t.Context(), "reconcile.c29uZy5jYQ")
				if last, err := time.Parse(time.RFC3339, value); err != nil || time.Since(last) > time.Minute {
					t.Errorf("the cell holds %q", value)
				}
			})
		})
	}
}

func TestNewReconcilerRefuses(t *testing.T) {
	_, err := ingest.NewReconciler(&runnerFake{}, &queueFake{}, map[string]time.Duration{"a": -1}, ingest.ReconcilerConfig{})
	wantError(t, err, core.CodeInvalid, "the period in which repository a is reconciled is negative")
	_, err = ingest.NewReconciler(&runnerFake{}, &queueFake{}, nil, ingest.ReconcilerConfig{Spread: -1})
	wantError(t, err, core.CodeInvalid, "must not be negative")
	r, err := ingest.NewReconciler(&runnerFake{}, &queueFake{}, nil, ingest.ReconcilerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Errorf("stopping what does not run: %v", err)
	}
}
