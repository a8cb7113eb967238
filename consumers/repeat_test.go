package consumers_test

import (
	"context"
	"fmt"
	"testing"

	"tutti/internal/core"
)

// TestRepeatedPageEndsTheList: an upstream that repeats rows and returns a huge total must not be read forever. The list is
// reread, then its job ends partial and unswept, with all rows that were read in the index.
func TestRepeatedPageEndsTheList(t *testing.T) {
	const rows = 130
	first := func(pageCall) (int, bool) { return 0, true }
	last := func(c pageCall) (int, bool) { return min(c.offset, rows-c.limit), true }
	ring := func(c pageCall) (int, bool) { return c.offset % (rows - c.limit), true }
	tests := []struct {
		name     string
		disjoint bool
		pageSize int
		stuck    func(pageCall) (int, bool)
		indexed  int
		most     int // whole pages that may be read
	}{
		{"the first page, longer than what pages are joined by", false, 100, first, 100, 8},
		{"the first page, as short as what pages are joined by", false, 10, first, 10, 4},
		{"the last page", false, 10, last, rows, 40},
		{"the list from its start again", false, 10, ring, rows - 3, 80},
		{"the first page of numbered ones", true, 10, first, 10, 4},
		{"the last page of numbered ones", true, 10, last, rows, 30},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.nonOverlapping, w.pageSize, w.upstream.stuck = tt.disjoint, tt.pageSize, tt.stuck
				w.upstream.fill("A", rows)
				w.seed("A", 3) // would be swept
				w.boot(-1)
				job := w.job(w.run("A", true))
				w.ended(job, core.JobPartial, core.JobErrorListShifted)
				run := w.onlyRun(job)
				if run.Rereads != 1 || run.Totals.Removed != 0 {
					t.Errorf("run: %+v", run)
				}
				if n := len(w.engine.live()) - 3; n != tt.indexed {
					t.Errorf("%d documents in the index, want %d", n, tt.indexed)
				}
				if n := w.upstream.wholePages(tt.pageSize); n > tt.most {
					t.Errorf("%d pages were read, want %d at most", n, tt.most)
				}
				if n := w.store.noteCount(); n != 0 {
					t.Errorf("the ids of %d pages are still kept", n)
				}
			})
		})
	}
}

// TestRepeatedPageOnce: a list that repeats a page once is complete in the end. A chain of overlapping pages only steps back
// for that; numbered pages are reread.
func TestRepeatedPageOnce(t *testing.T) {
	for _, disjoint := range []bool{false, true} {
		t.Run(fmt.Sprintf("disjoint %v", disjoint), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.nonOverlapping, w.pageSize = disjoint, 10
				w.upstream.fill("A", 95)
				repeated := false
				w.upstream.stuck = func(c pageCall) (int, bool) {
					now := c.offset > 30 && c.limit == 10 && !repeated
					repeated = repeated || now
					return 0, now
				}
				w.boot(-1)
				job := w.job(w.run("A", true))
				w.ended(job, core.JobSucceeded, "")
				w.verify()
				if run := w.onlyRun(job); (run.Rereads == 1) != disjoint {
					t.Errorf("the list was read again %d times", run.Rereads)
				}
			})
		})
	}
}

// TestJoinedPagesThatRepeat: a list starts over so that each page matches the one before. The search of all ids by the pages
// 1, 2, 4, 8 … notices that.
func TestJoinedPagesThatRepeat(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const period = 45 // the first rows of five pages of ten
		w.pageSize = 10
		w.upstream.fill("A", period)
		w.upstream.change("A", func(l []record) []record { return append(l, l[0]) })
		w.upstream.stuck = func(c pageCall) (int, bool) { return c.offset % period, true }
		w.upstream.onPage = func(_ context.Context, c pageCall) error {
			if c.n > 20 {
				return core.NewError(core.CodeUpstream, "too many pages were read")
			}
			return nil
		}
		w.boot(-1)
		job := w.job(w.run("A", true))
		w.ended(job, core.JobPartial, core.JobErrorListShifted)
		if job.Totals.Fetched != period || job.Totals.Indexed != period {
			t.Errorf("totals %+v", job.Totals)
		}
	})
}
