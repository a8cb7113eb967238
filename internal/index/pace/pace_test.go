package pace_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/index/pace"
)

// rowsFor passes rows on in pages, as a run does, until the time has passed, and returns how many a second.
func rowsFor(t *testing.T, p *pace.Pace, written *atomic.Int64, pages int, during time.Duration) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	before := written.Load()
	var calls sync.WaitGroup
	for range pages {
		calls.Go(func() {
			for ctx.Err() == nil {
				end, err := p.Page(ctx)
				if err != nil {
					return
				}
				for range 100 {
					if p.Row(ctx) != nil {
						break
					}
					written.Add(1)
					time.Sleep(100 * time.Microsecond)
				}
				end()
			}
		})
	}
	calls.Wait()
	return float64(written.Load()-before) / during.Seconds()
}

// engine is one whose searches take 2 ms, and more once over 2,000 rows a second are written.
func engine(written *atomic.Int64) func(context.Context, string) error {
	var last int64
	var at time.Time
	return func(context.Context, string) error {
		now, rows := time.Now(), written.Load()
		took := 2 * time.Millisecond
		if since := now.Sub(at).Seconds(); float64(rows-last)/since > 2000 {
			took *= 4
		}
		last, at = rows, now
		time.Sleep(took)
		return nil
	}
}

// TestReadersAreSpared: without readers nothing is limited. With readers a run goes as fast as searches allow, and without limit again once
// they have gone.
func TestReadersAreSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		p := pace.New(pace.Config{Probe: engine(&written)})
		if rate := rowsFor(t, p, &written, 4, time.Second); rate < 30_000 || p.Limited() {
			t.Errorf("without readers %.0f rows a second, limited %v", rate, p.Limited())
		}
		reading, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		readers.Go(func() {
			for reading.Err() == nil {
				p.Searched("analyses")
				time.Sleep(time.Second)
			}
		})
		time.Sleep(time.Second)
		rowsFor(t, p, &written, 4, 20*time.Second)
		if rate := rowsFor(t, p, &written, 4, 5*time.Minute); rate < 1000 || rate > 2200 || !p.Limited() {
			t.Errorf("with readers %.0f rows a second, want about 2,000, limited %v", rate, p.Limited())
		}
		stop()
		readers.Wait()
		rowsFor(t, p, &written, 4, 20*time.Second)
		if rate := rowsFor(t, p, &written, 4, time.Second); rate < 30_000 || p.Limited() {
			t.Errorf("once readers have gone %.0f rows a second, limited %v", rate, p.Limited())
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFewPages: while there is a limit, two pages are read at a time, so that no row waits for long.
func TestFewPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(pace.Config{Probe: func(context.Context, string) error { return errors.New("down") }})
		p.Searched("analyses")
		end, err := p.Page(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // after the rest
		p.Searched("analyses")
		second, err := p.Page(t.Context())
		if err != nil || !p.Limited() {
			t.Fatalf("the second page: %v, limited %v", err, p.Limited())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Page(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third page: %v", err)
		}
		second()
		third, err := p.Page(t.Context())
		if err != nil {
			t.Errorf("a third page once the second has ended: %v", err)
		}
		third()
		end()
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestStopEndsLimit: rows that wait pass once a Pace was stopped, and its goroutine has ended (synctest waits for it).
func TestStopEndsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(pace.Config{Probe: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }})
		p.Searched("analyses")
		passed := make(chan error, 1)
		go func() {
			end, err := p.Page(t.Context())
			if err == nil {
				err = p.Row(t.Context())
				end()
			}
			passed <- err
		}()
		time.Sleep(time.Second)
		select {
		case <-passed:
			t.Fatal("a row passed while runs rest")
		default:
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-passed; err != nil || p.Limited() {
			t.Errorf("after Stop: %v, limited %v", err, p.Limited())
		}
	})
}

// TestNil: no Pace limits nothing.
func TestNil(t *testing.T) {
	var p *pace.Pace
	p.Searched("a")
	end, err := p.Page(t.Context())
	if err != nil || p.Row(t.Context()) != nil || p.Limited() || p.Stop(t.Context()) != nil {
		t.Errorf("a nil Pace: %v", err)
	}
	end()
}
