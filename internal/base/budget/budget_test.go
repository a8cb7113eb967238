package budget_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/base/budget"
	"tutti/internal/core"
)

func made(t *testing.T, bytes int64, collect func()) *budget.Budget {
	t.Helper()
	b, err := budget.New(bytes, collect)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func acquire(t *testing.T, s *budget.Share, n int64) (release func()) {
	t.Helper()
	release, err := s.AcquireFor(t.Context(), "", n)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// TestAcquireInOrder: waiting calls of one holder are served in order, including small ones behind a large one, which is not starved;
// more than the share counts as all of it; other shares are not affected.
func TestAcquireInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := made(t, 500, func() {})
		first, second := acquire(t, b.Records, 60), acquire(t, b.Records, 30)
		var mu sync.Mutex
		var served []int64
		var running sync.WaitGroup
		release := make(chan struct{})
		for _, n := range []int64{500, 10, 10, 90} {
			running.Go(func() {
				done := acquire(t, b.Records, n)
				mu.Lock()
				served = append(served, n)
				mu.Unlock()
				<-release
				done()
			})
			synctest.Wait()
		}
		expect := func(when string, want ...int64) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(want, served) {
				t.Errorf("%s %v were served, want %v", when, served, want)
			}
		}
		first()
		first() // counts once
		expect("with 30 of 100 bytes in use")
		for _, other := range []*budget.Share{b.Requests, b.Payloads, b.Writes, b.Reads} {
			acquire(t, other, 100)()
		}
		second()
		expect("with nothing in use", 500)
		release <- struct{}{}
		expect("behind the large one", 500, 10, 10)
		release <- struct{}{}
		release <- struct{}{}
		expect("at the end", 500, 10, 10, 90)
		close(release)
		running.Wait()
	})
}

// TestHolderWithNothingDoesNotWait: a holder that holds nothing is never blocked by others; its further calls wait in the queue.
func TestHolderWithNothingDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := made(t, 500, func() {})
		acquireFor := func(holder string, n int64) (when func(string, bool) (release func())) {
			acquired := make(chan func(), 1)
			go func() {
				release, err := b.Records.AcquireFor(t.Context(), holder, n)
				if err != nil {
					t.Error(err)
				}
				acquired <- release
			}()
			return func(what string, want bool) (release func()) {
				t.Helper()
				synctest.Wait()
				select {
				case release = <-acquired:
				default:
				}
				if (release != nil) != want {
					t.Fatalf("%s: acquired is %t, want %t", what, release != nil, want)
				}
				return release
			}
		}
		slow := acquireFor("slow", 70)("the first", true)
		slowSecond := acquireFor("slow", 70)
		slowSecond("the second of the holder that fills the share", false)
		first := acquireFor("other", 100)("the first of another holder", true)
		second := acquireFor("other", 10)
		second("the second of the other holder", false)
		third := acquireFor("third", 100)("the first of a third holder", true)
		anonymous := acquireFor("", 0)
		anonymous("without a holder", false)
		first()
		released := second("the second of the other holder, which holds nothing else now", true)
		released()
		third()
		slow()
		slowSecond("the second of the holder that filled the share", true)()
		anonymous("without a holder, once those before have theirs", true)()
		acquire(t, b.Records, 100)()
	})
}

// TestCallersShare: a caller holds at most half, and so does a group of callers, each at most half of that; calls behind a caller at
// its limit are served, that of the caller with the fewest bytes first, in order among equals; a known caller that holds nothing does
// not wait.
func TestCallersShare(t *testing.T) {
	type requestFunc func(c core.Caller, n int64) (got func(want bool) (release func()))
	const size = 800
	known := func(id string) core.Caller { return core.Caller{ID: id, Known: true} }
	among := func(id string) core.Caller { return core.Caller{ID: id, Group: "anonymous"} }
	a, other := core.Caller{ID: "a"}, core.Caller{ID: "b"}
	for name, test := range map[string]func(requestFunc){
		"half each": func(request requestFunc) {
			first, second := request(a, 300)(true), request(a, 100)(true)
			large, small := request(a, 400), request(a, 50)
			large(false)
			small(false)
			rest := request(other, 5000)(true) // counts as half
			full := request(core.Caller{ID: "c"}, 1)
			full(false)
			second()
			large(false)
			small(false) // it does not overtake the large one
			full(true)()
			first()
			done := large(true)
			done()
			small(true)()
			rest()
		},
		"least first": func(request requestFunc) {
			first, second, third := request(a, 300)(true), request(a, 100)(true), request(other, 400)(true)
			aMore, bMore, c := request(a, 100), request(other, 100), request(core.Caller{ID: "c"}, 100)
			c(false)
			second()
			fourth := c(true)
			aMore(false)
			bMore(false)
			fourth()
			aMore(true)()
			third()
			bMore(true)()
			first()
		},
		"least first, one grant at a time": func(request requestFunc) {
			first, second := request(a, 400)(true), request(other, 400)(true)
			d, dMore, e := request(core.Caller{ID: "d"}, 200), request(core.Caller{ID: "d"}, 200), request(core.Caller{ID: "e"}, 200)
			first()
			third, fourth := d(true), e(true)
			dMore(false)
			second()
			dMore(true)()
			third()
			fourth()
		},
		"a group": func(request requestFunc) {
			x := request(among("x"), 300)(true) // counts as a quarter
			xMore := request(among("x"), 1)
			xMore(false)
			y := request(among("y"), 150)(true)
			large, small := request(among("z"), 100), request(among("y"), 10)
			large(false)
			small(false)
			token := request(known("k"), 400)(true)
			x()
			xMore(true)()
			large(true)()
			small(true)()
			y()
			token()
		},
		"known": func(request requestFunc) {
			first, second := request(a, 400)(true), request(other, 400)(true)
			unknown, k := request(core.Caller{ID: "c"}, 1), request(known("k"), 1)(true)
			kMore, l := request(known("k"), 1), request(known("l"), 500)(true)
			kMore(false)
			unknown(false)
			k()
			kMore(true)()
			first()
			unknown(false) // 800 of 800 bytes are in use
			l()
			unknown(true)()
			second()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := made(t, 5*size, func() {})
				test(func(c core.Caller, n int64) (got func(want bool) (release func())) {
					acquired := make(chan func(), 1)
					go func() {
						release, err := b.Requests.Acquire(t.Context(), c, n)
						if err != nil {
							t.Error(err)
						}
						acquired <- release
					}()
					synctest.Wait()
					return func(want bool) (release func()) {
						t.Helper()
						synctest.Wait()
						select {
						case release = <-acquired:
						default:
						}
						if (release != nil) != want {
							t.Fatalf("%d bytes of %+v: acquired is %t, want %t", n, c, release != nil, want)
						}
						return release
					}
				})
				acquire(t, b.Requests, size)()
			})
		})
	}
}

// TestAcquireCanceled: a canceled wait holds nothing.
func TestAcquireCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := made(t, 500, func() {})
		release := acquire(t, b.Writes, 100)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := b.Writes.AcquireFor(ctx, "", 1)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; core.CodeOf(err) != core.CodeOverloaded || !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
		release()
		acquire(t, b.Writes, 100)()
	})
}

// TestCollect: memory is collected before held and released bytes exceed the budget, and not before a quarter of it was released.
func TestCollect(t *testing.T) {
	collected := 0
	b := made(t, 400, func() { collected++ })
	held := acquire(t, b.Requests, 100)
	for i, want := range []int{0, 0, 0, 1, 1, 1, 2} {
		acquire(t, b.Writes, 100)()
		if collected != want {
			t.Errorf("after %d writes memory was freed %d times, want %d", i+1, collected, want)
		}
	}
	held()
	collected = 0
	b = made(t, 400, func() { collected++ })
	acquire(t, b.Records, 500)
	for range 30 {
		acquire(t, b.Writes, 10)()
	}
	if collected != 2 { // before the 12th and the 23rd: each time 110 bytes were released
		t.Errorf("beside a body larger than the budget memory was freed %d times, want 2", collected)
	}
	if _, err := budget.New(0, nil); core.CodeOf(err) != core.CodeInvalid {
		t.Errorf("a budget of nothing: %v", err)
	}
}

// TestReserve: what is reserved shrinks without waiting, and never grows; a known caller waits as others do; what is released counts as
// released memory.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collected := 0
		b := made(t, 500, func() { collected++ })
		reserve := func(id string, n int64) (shrink func(to int64)) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			shrink, err := b.Reads.Reserve(ctx, core.Caller{ID: id, Known: true}, n)
			if err != nil && core.CodeOf(err) != core.CodeOverloaded {
				t.Error(err)
			}
			return shrink
		}
		a, other := reserve("a", 400), reserve("b", 50) // a counts as half
		if a == nil || other == nil || reserve("c", 1) != nil {
			t.Fatal("the share is not full, or not granted")
		}
		a(60)
		if reserve("c", 1) != nil {
			t.Error("60 bytes count as less than half")
		}
		a(10)
		a(30)
		c := reserve("c", 40)
		if c == nil || reserve("d", 1) != nil {
			t.Error("10 bytes of a and 50 of b leave 40")
		}
		for _, shrink := range []func(int64){a, other, c} {
			shrink(0)
			shrink(0)
		}
		acquire(t, b.Reads, 100)()
		if collected != 1 { // with 500 bytes of 500 held and released
			t.Errorf("released memory was collected %d times", collected)
		}
	})
}
