package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// TestFollowing: the page after one that matches the one before goes on at its end, with the last row again where pages overlap; after one that
// does not match, the list is read from a step back; a list that repeats rows, or whose total contradicts them, ends and is not whole.
func TestFollowing(t *testing.T) {
	t.Parallel()
	last, before := []uint64{8, 9}, []uint64{1, 2}
	page := core.Page{Number: 3, Epoch: 2, Offset: 27, Limit: 10, Read: 28, GrowFrom: 5, StepsBack: 4, Before: before}
	see := func(rows, total, fresh int, change func(*seen)) seen {
		s := seen{PageInfo: core.PageInfo{Rows: rows, Total: total}, fresh: fresh, joined: true, last: last, overlapping: true, limit: 20}
		if change != nil {
			change(&s)
		}
		return s
	}
	numbered := func(s *seen) { s.overlapping = false }
	shifted := func(s *seen) { s.joined, s.moved = false, true }
	next := func(offset, limit, read int, change func(*core.Page)) *core.Page {
		p := &core.Page{Number: 4, Epoch: 2, Offset: offset, Limit: limit, Read: read, GrowFrom: 5, StepsBack: 4, Before: last}
		if change != nil {
			change(p)
		}
		return p
	}
	back := func(p *core.Page) { p.StepsBack, p.SteppedBack, p.Moved, p.Before = 5, true, true, before }
	for name, c := range map[string]struct {
		page core.Page
		seen seen
		next *core.Page
		verdict
	}{
		"goes on":                 {page, see(10, 100, 9, nil), next(36, 20, 37, nil), verdict{}},
		"of one row":              {page, see(1, 100, 1, nil), next(28, 20, 29, func(p *core.Page) { p.Before = nil }), verdict{}},
		"full at the total":       {page, see(10, 37, 9, nil), next(36, 20, 37, nil), verdict{}},
		"short at the total":      {page, see(5, 32, 4, nil), nil, verdict{last: true}},
		"short before the total":  {page, see(5, 33, 4, nil), next(31, 20, 32, nil), verdict{}},
		"no rows":                 {page, see(0, 27, 0, nil), nil, verdict{last: true}},
		"no rows of some":         {core.Page{Limit: 10}, see(0, 3, 0, nil), nil, verdict{last: true, repeats: true}},
		"more rows than in total": {page, see(10, 36, 9, nil), nil, verdict{last: true, repeats: true}},
		"numbered":                {page, see(10, 100, 9, numbered), next(37, 20, 37, nil), verdict{}},
		"numbered, the last":      {page, see(9, 36, 9, numbered), nil, verdict{last: true}},
		"numbered, not joined": {
			page, see(10, 100, 9, func(s *seen) { numbered(s); shifted(s) }), next(37, 20, 37, func(p *core.Page) { p.Moved = true }),
			verdict{shifted: true},
		},
		"not joined": {page, see(10, 100, 9, shifted), next(18, 10, 37, back), verdict{}},
		"not joined at the start": {
			core.Page{Number: 3, Epoch: 2, Offset: 9, Limit: 10, Read: 28, GrowFrom: 5, StepsBack: 4, Before: before},
			see(10, 100, 9, shifted),
			next(0, 10, 37, func(p *core.Page) { back(p); p.Before = nil }),
			verdict{},
		},
		"not joined too often": {
			core.Page{Number: 3, Epoch: 2, Offset: 27, Limit: 10, Read: 28, GrowFrom: 5, StepsBack: maxStepsBack},
			see(10, 100, 9, shifted),
			next(36, 20, 37, func(p *core.Page) { p.Moved, p.StepsBack = true, maxStepsBack }),
			verdict{shifted: true},
		},
		"repeats": {page, see(10, 100, 0, nil), nil, verdict{last: true, repeats: true}},
		"repeats after a shift": {
			page, see(10, 100, 0, shifted), next(18, 10, 28, func(p *core.Page) { back(p); p.Repeats = true }), verdict{},
		},
		"repeats after a step back": {
			core.Page{Number: 3, Offset: 27, Limit: 10, Read: 28, Repeats: true}, see(10, 100, 0, shifted), nil, verdict{last: true, repeats: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follows, v := following(c.page, c.seen)
			if diff := cmp.Diff(c.next, follows); diff != "" || v != c.verdict {
				t.Errorf("%+v, want %+v (-want +got):\n%s", v, c.verdict, diff)
			}
		})
	}
}

// TestLedger: an id stays open until it is settled, also if a later pass does not read it; one that gets a Request of its own is late if it is
// new to the chain; a record that differs counts once.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := ledger{rows: 4, unsettled: map[string]bool{"open": true, "done": true, "known": false}}
	l.settle("done")
	l.leave(map[string]bool{"again": true})
	if diff := cmp.Diff(map[string]bool{"again": true, "open": true, "known": false}, l.unsettled); diff != "" {
		t.Errorf("without an outcome (-want +got):\n%s", diff)
	}
	l.settleRequested("open")
	l.settleRequested("known")
	if diff := cmp.Diff([]string{"open"}, l.late); diff != "" || !l.isSettled("known") || len(l.unsettled) != 1 {
		t.Errorf("requested: %v left (-want +got):\n%s", l.unsettled, diff)
	}
	for _, kind := range []driftKind{driftMissing, driftOlder, driftDifferent} {
		for range 2 {
			l.countDrift(string(rune('a'+kind)), kind)
		}
	}
	if diff := cmp.Diff(core.Drift{Missing: 1, Different: 2, Older: 1}, l.totals.Drift); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
}

// TestIsOlder: a document is older than a stored one only if both have a time of their last change, by time and not by text.
func TestIsOlder(t *testing.T) {
	t.Parallel()
	const early, late = `{"at":"2026-01-01T12:00:00+02:00"}`, `{"at":"2026-01-01T11:00:00Z"}`
	for _, c := range []struct {
		path, document, stored string
		want                   bool
	}{
		{"at", early, late, true},
		{"at", late, early, false},
		{"at", early, early, false},
		{"at", `{}`, late, false},
		{"at", early, `{}`, false},
		{"", early, late, false},
	} {
		if got := isOlder(c.path, []byte(c.document), []byte(c.stored)); got != c.want {
			t.Errorf("%s before %s: %t", c.document, c.stored, got)
		}
	}
}

// TestUnread: a row that the page before read too is not read twice; with numbered pages none is.
func TestUnread(t *testing.T) {
	t.Parallel()
	other := core.Record{ID: "a", Organization: "other"} // it is counted, and makes no document
	for _, tt := range []struct {
		before  []uint64
		numbers bool
		unread  bool
	}{{nil, false, true}, {[]uint64{hashOf(other)}, false, false}, {[]uint64{hashOf(other)}, true, true}} {
		w := newTestWork(&memory{stored: make(map[string]core.DeadLetter)})
		w.page.Before, w.cfg.Sizes.NonOverlapping = tt.before, tt.numbers
		p := &pass{w: w, fresh: make(map[uint64]struct{})}
		for i, want := range []bool{tt.unread, true} {
			if unread, err := p.addRow(t.Context(), other); err != nil || unread != want {
				t.Errorf("%+v: row %d: got %v, %v, want %v", tt, i, unread, err, want)
			}
		}
	}
}
