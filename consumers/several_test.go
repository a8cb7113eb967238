package consumers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// threeLess makes three documents of a record, less one for each of its revisions.
func threeLess(rec core.Record, each func(id string, document []byte) error) error {
	rev := gjson.GetBytes(rec.Body, "rev").Int()
	for i := range 3 - rev {
		id := fmt.Sprintf("%s/%d", rec.ID, i)
		if err := each(id, fmt.Appendf(nil, `{"id":%q,"record":%q,"studyId":%q,"rev":%d,"repositories":[{"code":"song"}]}`,
			id, rec.ID, rec.Organization, rev)); err != nil {
			return err
		}
	}
	return nil
}

// TestOlderReading: a page that was read before its record changed neither overwrites nor restores documents of the record, also
// when the index had none of them when the newer request for the record was processed.
func TestOlderReading(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*record) // nil for a removal on request
		want   []string
	}{
		"unpublished":  {func(r *record) { r.state = "UNPUBLISHED" }, nil},
		"fewer files":  {func(r *record) { r.rev = 2 }, []string{"A-0000/0 2"}},
		"removed":      {nil, nil},
		"without file": {func(r *record) { r.rev = 3 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.split = threeLess
				w.upstream.fill("A", 1)
				held, free := make(chan struct{}), make(chan struct{})
				var once sync.Once
				w.engine.hold = func(_ context.Context, b core.Batch) error {
					if strings.Contains(string(b.Payload()), `"rev":0`) {
						once.Do(func() {
							close(held)
							<-free
						})
					}
					return nil
				}
				w.boot(-1)
				job := w.run("A", false)
				<-held
				if tt.change == nil {
					w.remove("A", "A-0000")
				} else {
					w.upstream.edit("A", "A-0000", tt.change)
					w.index("A", "A-0000")
				}
				eventually(t, "the end of the record", func() bool { return w.broker.size() == 1 })
				close(free)
				w.job(job)
				var got []string
				for id, doc := range w.engine.live() {
					got = append(got, fmt.Sprintf("%s %d", id, gjson.Get(doc, "rev").Int()))
				}
				if slices.Sort(got); !slices.Equal(got, tt.want) {
					t.Errorf("the index holds %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestSweepOfSeveral: a run removes the documents that records lost, and counts documents.
func TestSweepOfSeveral(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.split = threeLess
		w.upstream.fill("A", 60)
		w.boot(-1)
		if job := w.job(w.run("A", false)); job.Totals.Indexed != 180 || job.Totals.Fetched != 60 {
			t.Errorf("totals %+v, want 180 documents of 60 records", job.Totals)
		}
		w.upstream.edit("A", "A-0003", func(r *record) { r.rev = 1 })
		w.upstream.drop("A", 10, 12)
		if job := w.job(w.run("", false)); job.State != core.JobSucceeded || job.Totals.Removed != 7 {
			t.Errorf("%s, totals %+v, want 7 documents removed", job.State, job.Totals)
		}
		live := slices.Collect(maps.Keys(w.engine.live()))
		if len(live) != 173 || slices.Contains(live, "A-0003/2") {
			t.Errorf("%d documents, want 173", len(live))
		}
		// Nearly all documents of an organization are never removed without force.
		w.upstream.drop("A", 0, 40)
		if job := w.job(w.run("A", false)); job.Error == nil || job.Error.Code != core.JobErrorPruneGuard {
			t.Errorf("%s %+v, want the guard", job.State, job.Error)
		}
	})
}
