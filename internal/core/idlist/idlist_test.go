package idlist_test

import (
	"testing"

	"tutti/internal/core/idlist"
)

func TestSettled(t *testing.T) {
	for outcome, want := range map[idlist.Outcome]bool{
		idlist.Indexed: true, idlist.Removed: true, idlist.Excluded: true, idlist.Stale: true, idlist.Mismatch: true, idlist.DeadLettered: true,
		idlist.Retrying: false, idlist.Queued: false, idlist.Skipped: false, "": false,
	} {
		if got := outcome.Settled(); got != want {
			t.Errorf("%q is settled: %t", outcome, got)
		}
	}
}

func TestPages(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, idlist.IDsPerPage: 1, idlist.IDsPerPage + 1: 2, idlist.MaxIDs: 1000} {
		if got := (idlist.List{IDs: make([]string, n)}).Pages(); got != want {
			t.Errorf("%d ids have %d pages, want %d", n, got, want)
		}
	}
}
