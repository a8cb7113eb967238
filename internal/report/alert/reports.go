package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"tutti/internal/core"
)

const (
	// cellPauses names the cell in which each process reports the repositories that it has paused.
	cellPauses = "alerts.pauses"
	// reportEvery is how often a process repeats its report, reportTTL how long one counts that is not repeated.
	reportEvery = 15 * time.Second
	reportTTL   = time.Minute
	// changeAttempts is how often a change of the cell is tried when other processes change it too.
	changeAttempts = 10
)

// report is what one process reports. Beat changes with each repetition.
type report struct {
	Beat   uint64            `json:"beat"`
	Paused map[string]string `json:"paused"`
}

// reports are the pauses of all processes: an index may be out of reach for one of them only.
type reports struct {
	*Service
	// own is what this process reported at reportedAt.
	own        report
	reportedAt time.Time
	// heard is when the reports of other processes changed last.
	heard map[string]heardReport
}

type heardReport struct {
	beat uint64
	at   time.Time
}

func newReports(s *Service) reports { return reports{Service: s, heard: make(map[string]heardReport)} }

// local returns the pauses of this process, and the repositories of which it does not know yet.
func (r *reports) local() (paused map[string]string, starting []string) {
	paused = make(map[string]string)
	for _, p := range r.deps.Pauses() {
		if p.Starting {
			starting = append(starting, p.Repository)
		} else {
			paused[p.Repository] = truncated(p.Reason, maxExampleTextBytes)
		}
	}
	return paused, starting
}

// publish reports the pauses of this process if they have changed, or are to be repeated. After an error the next call tries again.
func (r *reports) publish(ctx context.Context, now time.Time) {
	paused, _ := r.local()
	if maps.Equal(paused, r.own.Paused) && (len(paused) == 0 || now.Sub(r.reportedAt) < reportEvery) {
		return
	}
	next := report{Beat: r.own.Beat + 1, Paused: paused}
	if err := r.change(ctx, func(all map[string]report) {
		all[r.self] = next
		if len(paused) == 0 {
			delete(all, r.self)
		}
	}); err != nil {
		r.log.DebugContext(ctx, "reporting pauses", "err", err)
		return
	}
	r.own, r.reportedAt = next, now
}

// withdraw removes the report of this process, which stops.
func (r *reports) withdraw(ctx context.Context) {
	if len(r.own.Paused) == 0 {
		return
	}
	if err := r.change(ctx, func(all map[string]report) { delete(all, r.self) }); err != nil {
		r.log.DebugContext(ctx, "withdrawing the report of pauses", "err", err)
	}
}

// read returns all reports and the revision of their cell.
func (r *reports) read(ctx context.Context) (map[string]report, uint64, error) {
	text, revision, err := r.deps.Cells.Cell(ctx, cellPauses)
	all := make(map[string]report)
	if err == nil && text != "" {
		if invalid := json.Unmarshal([]byte(text), &all); invalid != nil {
			all = make(map[string]report) // replaced by the next report
		}
	}
	return all, revision, err
}

// change changes the reports, again when another process did so at the same time; CodeConflict when that goes on.
func (r *reports) change(ctx context.Context, change func(map[string]report)) error {
	var err error
	for range changeAttempts {
		if err = r.tryChange(ctx, change); core.CodeOf(err) != core.CodeConflict {
			return err
		}
	}
	return err
}

// tryChange changes the reports once; CodeConflict when another process did so at the same time.
func (r *reports) tryChange(ctx context.Context, change func(map[string]report)) error {
	all, revision, err := r.read(ctx)
	if err != nil {
		return err
	}
	change(all)
	if len(all) == 0 {
		return r.deps.Cells.SetCell(ctx, cellPauses, "", revision)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encoding pauses: %w", err)
	}
	return r.deps.Cells.SetCell(ctx, cellPauses, string(text), revision)
}

// paused returns the repositories that any process has paused, with a reason, and those of which this one does not know yet. Reports
// of processes that ended without withdrawing them are removed after reportTTL.
func (r *reports) paused(ctx context.Context, now time.Time) (paused map[string]string, starting []string, err error) {
	all, _, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	var silent []string
	heard := make(map[string]heardReport, len(all))
	paused = make(map[string]string)
	for process, report := range all {
		h, known := r.heard[process]
		if !known || h.beat != report.Beat {
			h = heardReport{report.Beat, now}
		}
		heard[process] = h
		if process == r.self {
			continue
		}
		if now.Sub(h.at) > reportTTL {
			silent = append(silent, process)
			continue
		}
		maps.Copy(paused, report.Paused)
	}
	r.heard = heard
	if len(silent) > 0 {
		err := r.change(ctx, func(all map[string]report) {
			for _, process := range silent {
				delete(all, process)
			}
		})
		if err != nil && core.CodeOf(err) != core.CodeConflict {
			r.log.DebugContext(ctx, "removing reports of pauses", "err", err)
		}
	}
	own, starting := r.local()
	maps.Copy(paused, own)
	return paused, starting, nil
}
