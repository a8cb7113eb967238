package app_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tutti/internal/core"
)

// twenty are as many catalogues, each of an index of its own.
func twenty() folder {
	files := folder{}
	for i := range 20 {
		files[fmt.Sprintf("c%02d/base.json", i)] = based(fmt.Sprintf("d%02d", i), fmt.Sprintf("none-%02d", i), "")
	}
	return files
}

// TestCatalogueStart: a tutti starts without its engine, and every catalogue is listed. How long the start waits for
// catalogues at most, the tests of internal/search/catalogue hold to a clock of their own.
func TestCatalogueStart(t *testing.T) {
	for name, engine := range map[string]func(*testing.T) string{"refused": nobody, "silent": silence} {
		t.Run(name, func(t *testing.T) {
			b := newBuilt(t, engine(t), twenty())
			b.start()
			entries := b.catalogs()
			if len(entries) != 20 {
				t.Errorf("%d catalogues are listed", len(entries))
			}
			for id, entry := range entries {
				if entry.Error == nil || entry.Error.Code != core.CatalogueConnectionError {
					t.Errorf("%s is %+v", id, entry)
				}
			}
			b.readiness(core.CataloguesUnhealthy)
			b.furnish("S1")
			b.publish("S1", b.submit("S1"))
			b.demand(http.MethodPost, "/index/repository/"+builtInCode, "", http.StatusAccepted)
			b.demand(http.MethodPost, "/c00/graphql", `{"query":"{__typename}"}`, http.StatusNotFound)
		})
	}
}

// TestCatalogueDownAtStart: without its engine a tutti starts, says of every catalogue that there is no connection,
// takes triggers, and does everything once the engine is there.
func TestCatalogueDownAtStart(t *testing.T) {
	w, _ := newCatalogued(t, settings{spoilt: true}, folder{
		"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord, ""),
	})
	ids := w.fill("S1", 20)
	w.engine.setDown(true)
	w.start()
	w.readiness(core.CataloguesUnhealthy)
	for _, id := range []string{"a", "b"} {
		if p := w.problemOf(id); p == nil || p.Code != core.CatalogueConnectionError {
			t.Errorf("%s: %+v", id, p)
		}
	}
	for _, id := range ids {
		w.trigger("S1", id)
	}
	w.engine.setDown(false)
	w.awaitAvailable("a", "b")
	w.awaitPaused(false)
	w.converges(wait)
}

// TestCatalogueStop: catalogues that are tried again and again, and such whose engine never answers, do not hold a stop up
// and leave nothing behind.
func TestCatalogueStop(t *testing.T) {
	const limit = 3 * time.Second
	for name, engine := range map[string]func(*testing.T) string{"refused": nobody, "silent": silence} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			b := newBuilt(t, engine(t), twenty())
			b.set.shutdownTimeout = limit
			b.start()
			b.stop()
		})
	}
	t.Run("while a mapping is read", func(t *testing.T) {
		leavesNothing(t)
		w, _ := newCatalogued(t, settings{shutdownTimeout: limit}, folder{
			"a/base.json": based("a", aliasWord, ""), "b/base.json": based("b", aliasWord+"-b", ""),
		})
		x := w.moody()
		begun := make(chan struct{})
		var first sync.Once
		var reading atomic.Int64
		x.set(w.alias, func(ctx context.Context) error {
			reading.Add(1)
			defer reading.Add(-1)
			first.Do(func() { close(begun) })
			<-ctx.Done()
			return ctx.Err()
		})
		w.start()
		<-begun
		w.awaitProblem("b", indexMissing())
		w.stop()
		if n := reading.Load(); n != 0 {
			t.Errorf("%d readings go on after the stop", n)
		}
	})
}

// leavesNothing demands that at the end of the test no goroutine is there that was not there at its beginning.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
