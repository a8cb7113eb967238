package consumers_test

import (
	"fmt"
	"slices"
	"testing"

	"tutti/internal/core"
)

// TestRowsGoBeforeTheTotal: a row disappears after the rows of a page were read and before they were counted, at each page of lists that
// end at, or around, a page's end. No record that the repository still has is missing.
func TestRowsGoBeforeTheTotal(t *testing.T) {
	for _, nonOverlapping := range []bool{false, true} {
		for rows := 9; rows <= 32; rows++ {
			for at := 1; at <= 4; at++ {
				t.Run(fmt.Sprintf("nonOverlapping=%v/%d rows/page %d", nonOverlapping, rows, at), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.upstream.nonOverlapping, w.pageSize = nonOverlapping, 10
						w.upstream.fill("A", rows)
						calls := 0
						w.upstream.says = func(c pageCall, total int) int {
							if calls++; calls != at || total == 0 {
								return total
							}
							w.upstream.change("A", func(l []record) []record { return slices.Delete(l, 0, 1) })
							return total - 1
						}
						w.boot(-1)
						w.ended(w.job(w.run("A", true)), core.JobSucceeded, "")
						got := w.engine.live()
						for id := range w.upstream.model() {
							if got[id] == "" {
								t.Errorf("%s is not in the index", id)
							}
						}
					})
				})
			}
		}
	}
}
