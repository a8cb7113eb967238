package catalogue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// TestManyOnOneIndex: catalogues of one index share its reading; each has its own result.
func TestManyOnOneIndex(t *testing.T) {
	in(t, func(w *world) {
		var defs []definition.Definition
		for i := range 20 {
			d := minimal(fmt.Sprintf("c%02d", i))
			d.Index = "shared"
			defs = append(defs, d)
		}
		w.engine.set("shared", gives(oneField))
		w.start(defs)
		w.at(31)
		w.askedAt("shared", 0, 30)
		for _, d := range defs {
			w.state(d.ID, nil)
		}
	})
}

// many returns names of indices with the same result.
func (w *world) many(n int, r reading) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("c%03d", i)
		w.engine.set(ids[i], r)
	}
	return ids
}

// drawing uses random pauses from a fixed seed.
func drawing(seed uint64) func(*catalogue.Config) {
	return func(c *catalogue.Config) { c.Random = rand.New(rand.NewPCG(1, seed)).Float64 }
}

func steady(*catalogue.Config) {}

// asked returns the number of calls for all indices.
func (w *world) asked(ids []string) int {
	n := 0
	for _, id := range ids {
		n += len(w.engine.seconds(id))
	}
	return n
}

// until sleeps in steps of a tenth of a second until so many of the catalogues are available, and returns when that was.
func (w *world) until(ids []string, available int, limit float64) float64 {
	w.Helper()
	began := time.Since(w.engine.began).Seconds()
	for step := 1; ; step++ {
		at := began + float64(step)/10
		if at > limit {
			w.Fatalf("at %.1f s fewer than %d are available", limit, available)
		}
		w.at(at)
		n := 0
		for _, id := range ids {
			if w.r.Model(id) != nil {
				n++
			}
		}
		if n >= available {
			return at
		}
	}
}

// TestManyOnAnEngineThatIsDown: each index is probed once per pause, and the first response makes all available.
func TestManyOnAnEngineThatIsDown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      reading
		change func(*catalogue.Config)
		asked  []float64 // of each, at most
		within float64   // of the first, all others
	}{
		{"refusing", fails(core.ErrIndexUnreachable), steady, []float64{0, 1, 3, 7, 15, 31, 63, 123, 183}, 0},
		{"refusing, with jitter", fails(core.ErrIndexUnreachable), drawing(1), []float64{0, 0.8, 2.4, 5.6, 12, 24.8, 50.4, 98.4, 146.4, 194.4}, 1},
		// A timeout counts towards the pause, and a probe in flight is followed by another as soon as it ends.
		{"hanging", hangs, steady, []float64{0, 11, 22, 33, 44, 60, 92, 152}, 0},
		{"hanging, with jitter", hangs, drawing(2), []float64{0, 10.8, 21.6, 32.4, 43.2, 56, 81.6, 129.6, 177.6}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(w *world) {
				ids := w.many(20, tt.r)
				w.start(these(ids...), tt.change)
				w.at(200)
				for _, id := range ids {
					w.state(id, new(silent()))
					got := w.engine.seconds(id)
					if len(got) > len(tt.asked) {
						w.Errorf("%s was asked at %v", id, got)
					}
					for i := range min(len(got), len(tt.asked)) {
						if got[i] < tt.asked[i]-1e-6 {
							w.Errorf("%s was asked at %v, which is sooner than %v", id, got, tt.asked)
						}
					}
				}
				for _, id := range ids {
					w.engine.set(id, gives(oneField))
				}
				before := w.asked(ids)
				first := w.until(ids, 1, 262)
				w.at(first + tt.within)
				for _, id := range ids {
					w.state(id, nil)
				}
				if n := w.asked(ids) - before; n != 20 {
					w.Errorf("the engine was asked %d times until all were back", n)
				}
			})
		})
	}
}

// TestOneComesBack: failures of other indices do not delay the recovery of one.
func TestOneComesBack(t *testing.T) {
	for _, n := range []int{2, 20, 100} {
		for name, bad := range map[string]reading{"hanging": hangs, "refusing": fails(core.ErrIndexUnreachable)} {
			t.Run(fmt.Sprintf("%d %s", n, name), func(t *testing.T) {
				for seed := range uint64(5) {
					in(t, func(w *world) {
						ids := w.many(n, bad)
						w.start(these(ids...), drawing(seed))
						answers := 300 + 13*float64(seed)
						w.at(answers)
						one := ids[n-1:]
						w.engine.set(one[0], gives(oneField))
						w.until(one, 1, answers+62)
						w.at(answers + 63)
						// An index that hangs or rejects is probed once more, not repeatedly.
						before := w.asked(ids[:n-1])
						w.at(answers + 123)
						if asked := w.asked(ids[:n-1]) - before; asked > 2*(n-1) {
							w.Errorf("the others were asked %d times in a minute", asked)
						}
					})
				}
			})
		}
	}
}

// TestHealthyAmongHanging: an index that responds is probed on time, however many others hang.
func TestHealthyAmongHanging(t *testing.T) {
	in(t, func(w *world) {
		ids := w.many(100, hangs)
		w.engine.set("healthy", gives(oneField))
		w.start(append(these(ids...), minimal("healthy"), minimal("missing")))
		w.r.Refresh("missing") // the last, but it goes before those that nobody has called for
		w.at(1.1)              // the start has waited until 0.5
		w.state("missing", new(missing("missing")))
		w.at(3)
		w.state("healthy", nil)
		w.at(400)
		times := w.engine.seconds("healthy")
		for i := 1; i < len(times); i++ {
			if pause := times[i] - times[i-1]; pause < 30 || pause > 33 {
				w.Errorf("after %.1f s it was looked at %.1f s later", times[i-1], pause)
			}
		}
		if len(times) < 12 {
			w.Errorf("it was looked at at %v", times)
		}
		// One that answers all the time says nothing about those that do not.
		for _, id := range ids {
			if n := len(w.engine.seconds(id)); n > 13 {
				w.Errorf("%s was asked %d times", id, n)
			}
		}
	})
}

// TestOnesThatComeAndGo: an engine that fails every other time does not have the others asked more than once in a second.
func TestOnesThatComeAndGo(t *testing.T) {
	for seed := range uint64(5) {
		in(t, func(w *world) {
			ids := w.many(20, fails(core.ErrIndexUnreachable))
			for _, id := range ids[:10] {
				n := 0
				w.engine.set(id, func(context.Context) (json.RawMessage, error) {
					if n++; n%6 < 3 { // three failed checks in a row, so that it fails
						return nil, core.WrapError(core.CodeUnavailable, "secret", core.ErrIndexUnreachable)
					}
					return json.RawMessage(oneField), nil
				})
			}
			w.start(these(ids...), drawing(seed), func(c *catalogue.Config) { c.CheckEvery = time.Second })
			w.at(300)
			for _, id := range ids[10:] {
				times := w.engine.seconds(id)
				for i := 1; i < len(times); i++ {
					if times[i]-times[i-1] < 0.8-1e-6 {
						w.Fatalf("%s was asked at %.2f s and again at %.2f s", id, times[i-1], times[i])
					}
				}
			}
		})
	}
}

// TestManyComeBack not all at the same moment, and never more than a few side by side.
func TestManyComeBack(t *testing.T) {
	in(t, func(w *world) {
		ids := w.many(100, fails(core.ErrIndexUnreachable))
		w.start(these(ids...), drawing(4))
		w.at(200)
		var now, most atomic.Int64
		for _, id := range ids {
			w.engine.set(id, func(context.Context) (json.RawMessage, error) {
				for n := now.Add(1); ; {
					if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
						break
					}
				}
				defer now.Add(-1)
				time.Sleep(100 * time.Millisecond)
				return json.RawMessage(oneField), nil
			})
		}
		first := w.until(ids, 1, 262)
		w.at(first + 1.3)
		perTenth := map[int]int{}
		for _, id := range ids {
			w.state(id, nil)
			times := w.engine.seconds(id)
			perTenth[int(10*times[len(times)-1])]++
		}
		for tenth, n := range perTenth {
			if n > 15 {
				w.Errorf("%d were asked in one tenth of second %d", n, tenth/10)
			}
		}
		if n := most.Load(); n > 15 {
			w.Errorf("%d were asked side by side", n)
		}
	})
}

// TestConcurrentProbes: a start with many indices probes a few dozen concurrently, the next as soon as one has responded or takes long.
func TestConcurrentProbes(t *testing.T) {
	in(t, func(w *world) {
		ids := w.many(100, func(context.Context) (json.RawMessage, error) {
			time.Sleep(100 * time.Millisecond)
			return json.RawMessage(oneField), nil
		})
		slow := ids[:40]
		for _, id := range slow {
			w.engine.set(id, hangs)
		}
		w.start(these(ids...))
		w.at(2)
		var began []float64
		for _, id := range ids {
			began = append(began, w.engine.seconds(id)...)
		}
		slices.Sort(began)
		at := map[float64]int{}
		for _, second := range began {
			at[second]++
		}
		// 32 that hang; the last 8 of those with 24 others; all others as those have answered, the 8 being long.
		if at[0] != 32 || at[0.5] != 32 || at[0.6] != 24 || len(began) != 100 {
			w.Errorf("they were asked at %v", at)
		}
		for _, id := range ids[40:] {
			w.state(id, nil)
		}
	})
}

// TestEngineGoesDown: all catalogues of an engine fail together after their third check, and recover together.
func TestEngineGoesDown(t *testing.T) {
	in(t, func(w *world) {
		ids := w.many(5, gives(oneField))
		w.start(these(ids...))
		for _, id := range ids {
			w.engine.set(id, fails(core.ErrIndexUnreachable))
		}
		w.at(39)
		for _, id := range ids {
			w.state(id, nil)
		}
		w.at(40)
		for _, id := range ids {
			w.state(id, new(silent()))
		}
		if status := w.r.Catalogues().Status(); status != core.CataloguesUnhealthy {
			w.Errorf("status %s", status)
		}
		for _, id := range ids {
			w.engine.set(id, gives(oneField))
		}
		w.at(41)
		for _, id := range ids {
			w.state(id, nil)
			w.askedAt(id, 0, 30, 35, 40, 41)
		}
	})
}

// TestChecksKeepTheirInterval: an available catalogue fails only by three checks of its own, whatever recovers at the same time.
func TestChecksKeepTheirInterval(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", gives(oneField))
		w.engine.set("b", fails(core.ErrIndexUnreachable))
		w.start(these("a", "b"))
		w.engine.set("a", fails(core.ErrIndexUnreachable))
		w.at(30.5)
		w.engine.set("b", gives(oneField))
		w.at(39.9)
		w.state("b", nil)
		w.state("a", nil)
		w.askedAt("a", 0, 30, 35)
		w.at(40)
		w.state("a", new(silent()))
	})
}

// TestComesBackWhileOneHangs: a probe that hung while its engine recovered is not followed by a long pause.
func TestComesBackWhileOneHangs(t *testing.T) {
	in(t, func(w *world) {
		w.engine.set("a", hangs)
		w.engine.set("b", fails(core.ErrIndexUnreachable))
		w.start(these("a", "b"))
		w.at(182)
		w.askedAt("a", 0, 11, 22, 33, 44, 60, 92, 152)
		w.at(215) // a has hung since 212
		w.engine.set("a", gives(oneField))
		w.engine.set("b", gives(oneField))
		w.r.Refresh("b")
		w.at(222)
		w.state("b", nil)
		w.state("a", nil)
		w.askedAt("a", 0, 11, 22, 33, 44, 60, 92, 152, 212, 222)
	})
	// A catalogue that fails for another reason keeps its pauses.
	in(t, func(w *world) {
		w.engine.set("a", func(context.Context) (json.RawMessage, error) {
			time.Sleep(2 * time.Second)
			return nil, core.WrapError(core.CodeIndexBlocked, "secret", core.ErrIndexMissing)
		})
		w.engine.set("b", fails(core.ErrIndexUnreachable))
		w.start(these("a", "b"))
		w.at(35) // a is looked at since 34
		w.engine.set("b", gives(oneField))
		w.r.Refresh("b")
		w.at(60)
		w.state("b", nil)
		w.askedAt("a", 0, 3, 6, 10, 18, 34)
	})
}
