package consumers_test

import (
	"context"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// TestPlain: what the upstream knows of a record's text reaches the engine with its document, from pages and from triggers: that a document is
// plain only for those of the records that are.
func TestPlain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 40)
		for i, id := range []string{"A-0003", "A-0004", "A-0005"} {
			w.upstream.edit("A", id, func(r *record) { r.rev = i + 1 })
		}
		var mu sync.Mutex
		written, plain := 0, 0
		w.engine.hold = func(_ context.Context, b core.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for i, item := range b.Items {
				written++
				if item.Plain {
					plain++
				}
				if want := isPlain(int(gjson.GetBytes(b.Document(i), "rev").Int())); item.Plain != want {
					t.Errorf("%s is plain: %t, want %t", item.ID, item.Plain, want)
				}
			}
			return nil
		}
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		w.index("A", "A-0003")
		w.index("A", "A-0004")
		w.idle()
		if written != 42 || plain != 39 {
			t.Errorf("%d documents, %d plain; want 42, 39", written, plain)
		}
		w.verify()
	})
}
