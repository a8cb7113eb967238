package ingest

import (
	"context"
	"encoding/base64"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"tutti/internal/base/retry"
	"tutti/internal/core"
)

// Runner starts runs, as Service.Run does.
type Runner interface {
	Run(ctx context.Context, scope core.Scope, repository, organization string, flags core.RunFlags,
		cause core.Cause, requestID string) (core.Job, error)
}

// ReconcilerConfig configures a Reconciler. The zero value is the default.
type ReconcilerConfig struct {
	// Spread is the range of the random delay with which the processes of one queue check whether a run is due. Default
	// 30 s, and at most a tenth of a repository's period.
	Spread time.Duration
	// RetryMin and RetryMax are the shortest and the longest pause after an error. Default 1 s and 1 min.
	RetryMin, RetryMax time.Duration
	// Logger receives errors. Default: nothing is logged.
	Logger *slog.Logger
}

func (c ReconcilerConfig) withDefaults() ReconcilerConfig {
	if c.Spread == 0 {
		c.Spread = 30 * time.Second
	}
	if c.RetryMin == 0 {
		c.RetryMin = time.Second
	}
	if c.RetryMax == 0 {
		c.RetryMax = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A cell of the queue with a time holds that of the last run that was started; one with claimPrefix before the time says that a process
// has begun to start a run then. Should that process end before, another one starts the run once the claim has expired.
const claimPrefix = "starting "

// Bounds of the time until a claim expires, which is a period otherwise.
const (
	minClaim = 10 * time.Second
	maxClaim = time.Minute
)

// Reconciler runs repositories periodically, each with its own period, so that changes without a notification are
// indexed too. If several processes share a queue, one of them starts the run of each period: a cell of the queue stores
// the time of the last start, also across restarts.
type Reconciler struct {
	runner  Runner
	cells   core.Cells
	periods map[string]time.Duration
	cfg     ReconcilerConfig

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// NewReconciler returns a Reconciler for the periods of repositories, by their codes. A period of 0 disables its
// repository. CodeInvalid for a negative one.
func NewReconciler(
	runner Runner, cells core.Cells, every map[string]time.Duration, cfg ReconcilerConfig,
) (*Reconciler, error) {
	if cfg.Spread < 0 || cfg.RetryMin < 0 || cfg.RetryMax < 0 {
		return nil, core.NewError(core.CodeInvalid, "the spread and pauses of a reconciler must not be negative")
	}
	for code, period := range every {
		if period < 0 {
			return nil, core.NewError(core.CodeInvalid, "the period in which repository "+code+" is reconciled is negative")
		}
	}
	return &Reconciler{runner: runner, cells: cells, periods: every, cfg: cfg.withDefaults()}, nil
}

// Start starts the schedules and returns at once. It must be called only once.
func (r *Reconciler) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for code, period := range r.periods {
		if period > 0 {
			r.wg.Go(func() { r.reconcile(ctx, code, period) })
		}
	}
}

// Stop ends the schedules and waits for that, at most until ctx ends. It does nothing before Start.
func (r *Reconciler) Stop(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	done := make(chan struct{})
	go func() {
		r.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return core.WrapError(core.CodeUnavailable, "stopping the reconciler", ctx.Err())
	}
}

// reconcile starts the runs of one repository until ctx ends.
func (r *Reconciler) reconcile(ctx context.Context, code string, period time.Duration) {
	spread := min(r.cfg.Spread, period/10)
	wait, failures := spreadOver(spread), 0
	for retry.Sleep(ctx, wait) == nil {
		next, err := r.runIfDue(ctx, code, period)
		if err == nil {
			wait, failures = next+spreadOver(spread), 0
			continue
		}
		if ctx.Err() != nil {
			return
		}
		wait = retry.Delay(failures, r.cfg.RetryMin, r.cfg.RetryMax)
		failures++
		r.cfg.Logger.WarnContext(ctx, "reconciling a repository failed and is retried", "repository", code,
			"pause", wait, "err", err)
	}
}

// runIfDue starts a run if the last one is a period ago, and returns how long it is until the next one.
func (r *Reconciler) runIfDue(ctx context.Context, code string, period time.Duration) (time.Duration, error) {
	cell := reconcileCell(code)
	former, revision, err := r.cells.Cell(ctx, cell)
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	if wait := untilDue(former, now, period); wait > 0 {
		return wait, nil
	}
	started := now.Format(time.RFC3339Nano)
	claim := claimPrefix + started
	err = r.cells.SetCell(ctx, cell, claim, revision)
	if core.CodeOf(err) == core.CodeConflict {
		// Another process was first, and its time is in the cell.
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	expires := now.Add(claimFor(period))
	if err := r.run(ctx, code, expires); err != nil {
		r.replaceClaim(ctx, cell, claim, former, expires)
		return 0, err
	}
	r.replaceClaim(ctx, cell, claim, started, expires)
	return period, nil
}

// run starts a run before its claim expires.
func (r *Reconciler) run(ctx context.Context, code string, expires time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, expires)
	defer cancel()
	_, err := r.runner.Run(ctx, core.ScopeRepository, code, "", core.RunFlags{Difference: true}, core.CauseReconcile, "")
	return err
}

// claimFor returns how long a process may take to start a run.
func claimFor(period time.Duration) time.Duration { return max(minClaim, min(period, maxClaim)) }

// untilDue returns how long it is until the next run, from the content of the cell. An invalid time, or one too far
// in the future because of a wrong clock, counts as none: an additional run does no harm.
func untilDue(value string, now time.Time, period time.Duration) time.Duration {
	value, claimed := strings.CutPrefix(value, claimPrefix)
	if claimed {
		period = claimFor(period)
	}
	last, err := time.Parse(time.RFC3339Nano, value)
	if err != nil || last.After(now.Add(period)) {
		return 0
	}
	return last.Add(period).Sub(now)
}

// replaceClaim sets the cell of this process's claim to the time of its run, or to the former value if the run was not started, so that
// any process may start it. It retries until the claim expires: then the run is started again.
func (r *Reconciler) replaceClaim(ctx context.Context, cell, claim, value string, expires time.Time) {
	for failures := 0; ; failures++ {
		err := r.tryReplaceClaim(ctx, cell, claim, value)
		if err == nil || core.CodeOf(err) == core.CodeConflict {
			return
		}
		wait := retry.Delay(failures, r.cfg.RetryMin, r.cfg.RetryMax)
		if time.Until(expires) < wait || retry.Sleep(ctx, wait) != nil {
			r.cfg.Logger.WarnContext(ctx, "the time of the last reconciliation was not stored: a run is started again soon", "err", err)
			return
		}
	}
}

func (r *Reconciler) tryReplaceClaim(ctx context.Context, cell, claim, value string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	found, revision, err := r.cells.Cell(ctx, cell)
	if err != nil || found != claim {
		return err
	}
	return r.cells.SetCell(ctx, cell, value, revision)
}

// reconcileCell names the cell of a repository's last reconciling run.
func reconcileCell(code string) string {
	return "reconcile." + base64.RawURLEncoding.EncodeToString([]byte(code))
}

// spreadOver returns a random part of d.
func spreadOver(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}
