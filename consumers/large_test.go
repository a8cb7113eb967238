package consumers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
)

// TestRecordsOverTheLimitOnAPage: their neighbours are written, and each becomes a dead letter that says why, also when more
// are set aside than are buffered, or one has no id; their earlier documents stay.
func TestRecordsOverTheLimitOnAPage(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.limit = 1000
		w.cfg.MaxRecordBytes = 1000
		w.upstream.fill("A", 100)
		w.boot(-1)
		w.ended(w.job(w.run("A", false)), core.JobSucceeded, "")
		before := w.engine.live()
		w.upstream.change("A", func(l []record) []record {
			for i := range l {
				l[i].rev++
				if i%5 == 1 {
					l[i].pad = 2000
				}
			}
			l[6].id = ""
			l[11].org = "B" // that is another organization's to say
			return l
		})
		job := w.job(w.run("A", false))
		w.ended(job, core.JobPartial, core.JobErrorRecordsRejected)
		if job.Totals.Rejected != 19 || job.Totals.Indexed != 80 || job.Totals.Fetched != 100 {
			t.Errorf("totals %+v", job.Totals)
		}
		letters := w.store.dead()
		if len(letters) != 19 {
			t.Errorf("%d dead letters", len(letters))
		}
		live := w.engine.live()
		for id, d := range letters {
			if d.Size < 2000 || d.SHA256 == "" || len(d.Document) == 0 {
				t.Errorf("%q: %+v", id, d)
			}
			if strings.HasPrefix(d.RecordID, "without-id-") {
				if d.RecordID != "without-id-"+d.SHA256 || d.Reason != core.ReasonInvalidID {
					t.Errorf("letter %s, %s of a document with the hash %s", d.RecordID, d.Reason, d.SHA256)
				}
				continue
			}
			if d.Reason != core.ReasonTooLarge || !has(d.Hint, "index.maxRecordBytes", "1000 bytes") {
				t.Errorf("%q: %s, %s", id, d.Reason, d.Hint)
			}
			if live[d.RecordID] != before[d.RecordID] || live[d.RecordID] == "" {
				t.Errorf("the document of %s became %.100q", d.RecordID, live[d.RecordID])
			}
		}
	})
}

// TestRecordOverTheLimit: a record that is fetched by itself becomes a dead letter too, and is written once it is small
// enough.
func TestRecordOverTheLimit(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.limit = 1000
		w.upstream.fill("A", 2)
		w.upstream.edit("A", "A-0001", func(r *record) { r.pad = 2000 })
		w.boot(-1)
		w.index("A", "A-0000")
		w.index("A", "A-0001")
		w.idle()
		letters := slices.Collect(maps.Values(w.store.dead()))
		if len(letters) != 1 || letters[0].RecordID != "A-0001" || letters[0].Reason != core.ReasonTooLarge || letters[0].Size < 2000 ||
			letters[0].EngineType != "" || !has(letters[0].Hint, "index.maxRecordBytes", "33554432 bytes") {
			t.Errorf("%+v", letters)
		}
		w.upstream.edit("A", "A-0001", func(r *record) { r.pad = 10 })
		w.index("A", "A-0001")
		w.idle()
		w.verify()
		if n := len(w.store.dead()); n != 0 {
			t.Errorf("%d dead letters are left", n)
		}
	})
}

// TestRecordsOverTheLimitDoNotPause: the index rejected none of them, so its mapping is not the cause, however many there
// are.
func TestRecordsOverTheLimitDoNotPause(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.limit = 1
		w.upstream.fill("A", 1100)
		p := w.boot(-1)
		for _, id := range idsOf("A", 1100) {
			w.index("A", id)
		}
		w.idle()
		if n := len(w.store.dead()); n != 1100 || len(p.c.Paused()) != 0 {
			t.Errorf("%d dead letters, paused %v", n, p.c.Paused())
		}
	})
}

// TestRecordsInFlightAreBoundedByBytes: while the index is slow, no more bodies are fetched than calls may be in flight and
// the bulk writer has room for, however many messages there are: single ones and in a batch.
func TestRecordsInFlightAreBoundedByBytes(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		const size, batch, calls = 10_000, 25_000, 4
		w.bulk.BatchBytes, w.bulk.MaxInFlight = batch, 1
		w.upstream.fill("A", 200)
		w.upstream.change("A", func(l []record) []record {
			for i := range l {
				l[i].pad = size
			}
			return l
		})
		free := make(chan struct{})
		w.engine.hold = func(context.Context, core.Batch) error {
			<-free
			return nil
		}
		w.boot(-1)
		ids := slices.Sorted(maps.Keys(w.upstream.model()))
		for _, id := range ids[:100] {
			w.index("A", id)
		}
		w.indexAll(ids[100:]...)
		time.Sleep(time.Second)
		synctest.Wait()
		// bulk.Config: 2 × MaxInFlight + 3 batches.
		if n := w.upstream.requestsFor(""); n == 0 || n > calls+5*batch/size {
			t.Errorf("%d records were fetched while nothing could be written", n)
		}
		close(free)
		w.idle()
		w.verify()
	})
}

// TestRecordReleasesItsMemory: the memory of a fetched record is released whatever its outcome, and before that is known.
func TestRecordReleasesItsMemory(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.upstream.fill("A", 5)
		w.upstream.edit("A", "A-0001", func(r *record) { r.state = "UNPUBLISHED" })
		w.upstream.edit("A", "A-0002", func(r *record) { r.org = "B" })
		w.upstream.edit("A", "A-0003", func(r *record) { r.pad = 2000 })
		w.upstream.limit = 1000
		var held atomic.Int64
		w.upstream.release = func() func() {
			held.Add(1)
			return func() { held.Add(-1) }
		}
		free := make(chan struct{})
		w.engine.hold = func(context.Context, core.Batch) error {
			<-free
			return nil
		}
		w.boot(-1)
		for i := range 5 {
			w.index("A", fmt.Sprintf("A-%04d", i))
		}
		w.remove("A", "A-0004")
		time.Sleep(time.Second)
		synctest.Wait()
		if n := held.Load(); n != 0 || w.upstream.requestsFor("") == 0 {
			t.Errorf("the memory of %d records is held while they are written", n)
		}
		close(free)
		w.idle()
		if n := held.Load(); n != 0 {
			t.Errorf("the memory of %d records is held at the end", n)
		}
	})
}
