package consumers_test

import (
	"slices"
	"testing"

	"tutti/internal/core"
)

// TestTotalsThatContradictTheRows: a list is reread whose total is below the rows of a page, or above zero without rows. It
// ends partial, unswept, when it still contradicts itself then.
func TestTotalsThatContradictTheRows(t *testing.T) {
	tests := []struct {
		name string
		rows int
		says func(c pageCall, total int) int
	}{
		{"none on the first page", 95, func(pageCall, int) int { return 0 }},
		{"none on a later page", 95, func(c pageCall, total int) int {
			if c.offset >= 20 {
				return 0
			}
			return total
		}},
		{"one less than the rows of the last page", 95, func(c pageCall, total int) int {
			if c.offset+c.limit > total {
				return total - 1
			}
			return total
		}},
		{"many of an empty list", 0, func(pageCall, int) int { return 1_000_000_000 }},
	}
	for _, tt := range tests {
		for _, passes := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{true: ", once", false: ", always"}[passes], func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.pageSize = 10
					w.upstream.fill("A", tt.rows)
					w.seed("A", 3) // would be swept
					readings := 0
					w.upstream.says = func(c pageCall, total int) int {
						if c.offset == 0 {
							readings++
						}
						if passes && readings > 1 {
							return total
						}
						return tt.says(c, total)
					}
					w.boot(-1)
					job := w.job(w.run("A", true))
					if passes {
						w.ended(job, core.JobSucceeded, "")
						w.verify()
					} else {
						w.ended(job, core.JobPartial, core.JobErrorListShifted)
					}
					if run := w.onlyRun(job); run.Rereads != 1 || readings != 2 || (run.Totals.Removed == 3) != passes {
						t.Errorf("read %d times, run %+v", readings, run)
					}
				})
			})
		}
	}
}

// TestShrinkingList: rows disappear upstream while the list is read, down to fewer than were read. The list ends.
func TestShrinkingList(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.pageSize = 10
		w.upstream.fill("A", 95)
		w.shift(6, func(l []record) []record { return slices.Delete(l, 5, 80) })
		w.boot(-1)
		w.ended(w.job(w.run("A", true)), core.JobSucceeded, "")
		w.ended(w.job(w.run("A", true)), core.JobSucceeded, "") // what went after it was read goes with the next run
		w.verify()
	})
}
