package consumers_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
)

// refusing makes the upstream refuse pages of more than most rows, of the calls for which while returns true, and returns how many it has
// refused.
func (u *upstream) refusing(most int, refuse func() error, while func(pageCall) bool) *atomic.Int64 {
	refused := new(atomic.Int64)
	u.onPage = func(_ context.Context, c pageCall) error {
		if c.limit <= most || while != nil && !while(c) {
			return nil
		}
		refused.Add(1)
		return refuse()
	}
	return refused
}

// largePageErrors are what an upstream, or a gateway in front of it, says to a page that is too large.
func largePageErrors() map[string]func() error {
	return map[string]func() error{
		"413": func() error {
			return core.WrapError(core.CodeUpstream, "the upstream answered with status 413", core.ErrAskedTooMuch)
		},
		"500": func() error { return unavailable("the upstream answered with status 500") },
		"503": func() error {
			return &core.Error{Code: core.CodeOverloaded, Message: "the upstream answered with status 503", RetryAfter: time.Second}
		},
		"no answer in time": func() error {
			time.Sleep(30 * time.Second)
			return unavailable("the upstream did not answer in time")
		},
	}
}

// TestLargePagesAreNotReturned: a list whose pages are returned only up to a size, which is not the configured one, is read in smaller pages,
// and each row counts once. From time to time a larger page is tried.
func TestLargePagesAreNotReturned(t *testing.T) {
	cases := largePageErrors()
	cases["cut short"] = nil
	for name, refuse := range cases {
		for _, numbered := range []bool{false, true} {
			for _, most := range []int{2, 30} {
				t.Run(fmt.Sprint(name, " ", numbered, " ", most), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.upstream.nonOverlapping, w.pageSize = numbered, 100
						w.upstream.fill("A", 500)
						refused := new(atomic.Int64)
						if refuse != nil {
							refused = w.upstream.refusing(most, refuse, nil)
						} else {
							w.upstream.cut = func(c pageCall) int {
								if c.limit <= most {
									return -1
								}
								refused.Add(1)
								return most
							}
						}
						w.seed("A", 1)
						w.boot(-1)
						job := w.awaitFor(w.run("A", true), time.Hour)
						w.idle()
						w.ended(job, core.JobSucceeded, "")
						w.verify()
						if want := (core.Totals{Expected: 500, Fetched: 500, Indexed: 500, Removed: 1}); job.Totals != want {
							t.Errorf("totals %+v, want %+v", job.Totals, want)
						}
						whole := len(slices.DeleteFunc(w.upstream.pageCalls(), func(c pageCall) bool { return c.limit > most || c.limit == 1 && numbered }))
						if limit := 8 + whole/16; refused.Load() == 0 || int(refused.Load()) > limit {
							t.Errorf("%d pages were refused, %d were not", refused.Load(), whole)
						}
					})
				})
			}
		}
	}
}

// TestLargePagesOfManyOrganizations: so are the lists of a repository with many organizations.
func TestLargePagesOfManyOrganizations(t *testing.T) {
	for name, refuse := range largePageErrors() {
		for _, numbered := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", numbered), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					w.upstream.nonOverlapping = numbered
					records := fillMany(w, 70, 3, 40, 69)
					w.pageSize = 10
					refused := w.upstream.refusing(4, refuse, nil)
					w.boot(-1)
					job := w.awaitFor(w.run("", true), time.Hour)
					w.ended(job, core.JobSucceeded, "")
					w.verify()
					if want := (core.Totals{Expected: records, Fetched: records, Indexed: records}); job.Totals != want || refused.Load() == 0 {
						t.Errorf("totals %+v, want %+v; %d pages were refused", job.Totals, want, refused.Load())
					}
				})
			})
		}
	}
}

// TestRefusedPagesGrowAgain: once larger pages are returned again, the list is read with pages of the configured size, also if all pages failed for a
// while, down to the smallest.
func TestRefusedPagesGrowAgain(t *testing.T) {
	for name, refuse := range largePageErrors() {
		for _, numbered := range []bool{false, true} {
			for _, most := range []int{0, 30} {
				if most == 0 && name == "413" { // which ends the run
					continue
				}
				t.Run(fmt.Sprint(name, " ", numbered, " ", most), func(t *testing.T) {
					in(t, func(t *testing.T, w *world) {
						w.giveUpAfter = time.Hour
						w.upstream.nonOverlapping, w.pageSize = numbered, 100
						w.upstream.fill("A", 1500)
						w.upstream.refusing(most, refuse, func(c pageCall) bool { return c.n < 20 })
						w.boot(-1)
						id := w.run("A", false)
						job := w.awaitFor(id, time.Hour)
						w.ended(job, core.JobSucceeded, "")
						w.verify()
						calls, largest := w.upstream.pageCalls(), 100
						if i := slices.IndexFunc(calls, func(c pageCall) bool { return c.limit < 50 }); i < 0 {
							t.Error("no page was smaller")
						}
						if numbered { // no page of 100 rows begins where one of 64 ends
							calls = slices.DeleteFunc(calls, func(c pageCall) bool { return c.limit == 1 })
							largest = 64
						}
						if last := calls[len(calls)-1]; last.limit < largest {
							t.Errorf("the last page was %+v", last)
						}
					})
				})
			}
		}
	}
}

// TestUnavailableIsNotTooLarge: the pages of a repository that answers nothing, or takes no more calls for a while, stay as large as they were,
// while it is unavailable and afterwards.
func TestUnavailableIsNotTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		list bool // the list of organizations is answered
	}{
		"refuses connections": {unavailable("the upstream could not be reached"), false},
		"503":                 {&core.Error{Code: core.CodeOverloaded, Message: "the upstream answered with status 503"}, false},
		"429": {&core.Error{
			Code: core.CodeOverloaded, Message: "the upstream answered with status 429", RetryAfter: 10 * time.Second, Err: core.ErrRateLimited,
		}, true},
		"a foreign 404": {errForeignNotFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.giveUpAfter = time.Hour
				w.upstream.fill("A", 500)
				var until time.Time
				down := func() error {
					if time.Now().Before(until) {
						return c.err
					}
					return nil
				}
				w.upstream.onPage = func(_ context.Context, c pageCall) error {
					if c.n == 3 {
						until = time.Now().Add(10 * time.Minute)
					}
					return down()
				}
				if !c.list {
					w.upstream.onList = down
				}
				w.boot(-1)
				id := w.run("A", false)
				within(t, 10*time.Minute, "the pause of "+id, func() bool {
					job, err := w.store.job(id)
					return err == nil && job.State == core.JobPaused
				})
				w.ended(w.awaitFor(id, time.Hour), core.JobSucceeded, "")
				w.verify()
				for _, c := range w.upstream.pageCalls() {
					if c.limit != 100 {
						t.Errorf("a page is %+v", c)
					}
				}
			})
		})
	}
}

// TestStepBackIsTooLarge: a page that steps back, since rows have moved, and is not returned, is followed by one that begins later, next to the
// rows that were read: the list is not read from its start.
func TestStepBackIsTooLarge(t *testing.T) {
	for name, refuse := range largePageErrors() {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.pageSize = 400
				w.upstream.fill("A", 1500)
				moved := false
				refused := w.upstream.refusing(250, refuse, func(c pageCall) bool {
					if c.n == 3 {
						w.upstream.drop("A", 5, 35)
						moved = true
					}
					return moved && c.n > 3
				})
				w.boot(-1)
				w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
				got := w.engine.live()
				for id := range w.upstream.model() {
					if _, is := got[id]; !is {
						t.Errorf("%s is missing", id)
					}
				}
				calls := w.upstream.pageCalls()
				for _, c := range calls[2:] {
					if c.limit < 400 && c.offset < 500 {
						t.Errorf("a page is %+v", c)
					}
				}
				if refused.Load() == 0 {
					t.Errorf("the pages are %+v", calls)
				}
			})
		})
	}
}

// TestPageIsTooLargeForEver: a page that is not returned at any size ends the run with the reason, as before.
func TestPageIsTooLargeForEver(t *testing.T) {
	for name, refuse := range largePageErrors() {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.upstream.fill("A", 500)
				w.seed("A", 1)
				w.upstream.refusing(0, refuse, func(c pageCall) bool { return c.offset <= 297 && 297 < c.offset+c.limit })
				w.boot(-1)
				job := w.awaitFor(w.run("A", false), time.Hour)
				w.ended(job, core.JobFailed, string(core.CodeOf(refuse())))
				if !has(job.Error.Message, "rows from 29", core.MessageOf(refuse())) {
					t.Errorf("message %q", job.Error.Message)
				}
				if _, kept := w.engine.live()["A-old-0000"]; !kept {
					t.Error("a run that could not be read has swept")
				}
			})
		})
	}
}
