package catalogue_test

import (
	"fmt"
	"testing"

	"tutti/internal/catalogue"
	"tutti/internal/catalogue/definition"
	"tutti/internal/core"
)

// TestManyOnOneIndex share its reading; each has its own result.
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

// TestManyOnAnEngineThatIsDown: once it is known to be down one index at a time looks for it, and the first answer brings
// all back.
func TestManyOnAnEngineThatIsDown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      reading
		random float64
	}{{"refusing", fails(core.ErrIndexUnreachable), 0}, {"refusing, with jitter", fails(core.ErrIndexUnreachable), 0.9}, {"hanging", hangs, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, func(w *world) {
				var ids []string
				for i := range 20 {
					ids = append(ids, fmt.Sprintf("c%02d", i))
					w.engine.set(ids[i], tt.r)
				}
				n := 0
				w.start(these(ids...), func(c *catalogue.Config) {
					c.Random = func() float64 { n++; return tt.random * float64(n%7) / 7 }
				})
				w.at(200)
				perSecond := map[int]int{}
				for _, id := range ids {
					for _, at := range w.engine.seconds(id) {
						perSecond[int(at)]++
					}
					w.state(id, new(silent()))
				}
				if perSecond[0] < 20 {
					w.Errorf("%d were asked at once at the start", perSecond[0])
				}
				for second, times := range perSecond {
					if second > 0 && times > 2 {
						w.Errorf("in second %d the engine was asked %d times", second, times)
					}
				}
				for _, id := range ids {
					w.engine.set(id, gives(oneField))
				}
				w.at(275)
				for _, id := range ids {
					w.state(id, nil)
				}
			})
		})
	}
}

// TestEngineGoesDown: all that it served fail together after their third check, and come back together.
func TestEngineGoesDown(t *testing.T) {
	in(t, func(w *world) {
		ids := []string{"a", "b", "c", "d", "e"}
		for _, id := range ids {
			w.engine.set(id, gives(oneField))
		}
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
		}
		total := 0
		for _, id := range ids {
			total += len(w.engine.seconds(id))
		}
		if want := 5 + 5 + 1 + 1 + 5; total != want { // start, check, two for all, all again
			w.Errorf("the engine was asked %d times, want %d", total, want)
		}
	})
}
