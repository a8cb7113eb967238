package consumers_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
)

// TestNextVersionFromTheFuture: while a rebuild fills another index, a version in that one is higher than those of new messages, as a clock
// was set back, or the clock of a producer of events is behind. A record that is fetched now must still replace the document there, too.
func TestNextVersionFromTheFuture(t *testing.T) {
	const id = "A-0000"
	removal := func(w *world) { w.remove("A", id) }
	triggers := map[string]func(w *world){
		"trigger": func(w *world) { w.index("A", id) },
		"batch":   func(w *world) { w.indexAll(id) },
		"run":     func(w *world) { w.run("A", false) },
		"event":   func(w *world) { w.event(core.KindIndex, id, time.Now().Add(-time.Hour)) },
	}
	for name, c := range map[string]struct {
		change func(w *world)
		// trigger, when set, replaces all triggers.
		trigger func(w *world)
		several bool
	}{
		"updated":          {change: func(w *world) { w.upstream.edit("A", id, func(r *record) { r.rev = 7 }) }},
		"unpublished":      {change: func(w *world) { unpublish(w, "A", id) }},
		"deleted":          {change: func(w *world) { remove(w, "A", id) }},
		"moved":            {change: func(w *world) { w.upstream.move(id, "B") }},
		"removed":          {change: func(*world) {}, trigger: removal},
		"updated files":    {change: func(w *world) { w.upstream.edit("A", id, func(r *record) { r.rev = 1 }) }, several: true},
		"removed files":    {change: func(*world) {}, trigger: removal, several: true},
		"files without id": {change: func(w *world) { remove(w, "A", id) }, several: true},
	} {
		for triggerName, trigger := range triggers {
			if c.trigger != nil {
				if triggerName != "trigger" {
					continue
				}
				trigger = c.trigger
			}
			t.Run(name+"/"+triggerName, func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					if c.several {
						w.split = threeLess
					}
					w.upstream.fill("A", 30)
					w.upstream.fill("B", 1)
					w.boot(-1)
					w.ended(w.job(w.run("", false)), core.JobSucceeded, "")
					next := newEngine()
					version := ahead(40 * time.Second)
					if triggerName == "event" {
						version = ahead(0)
					}
					w.engine.mu.Lock()
					for of, d := range w.engine.docs { // the pages of the rebuild
						d.version = version
						next.docs[of] = d
					}
					w.engine.next = next
					w.engine.mu.Unlock()
					c.change(w)
					trigger(w)
					w.idle()
					if diff := cmp.Diff(w.engine.live(), next.live()); diff != "" {
						t.Errorf("the other index differs (-own +next):\n%.3000s", diff)
					}
				})
			})
		}
	}
}
