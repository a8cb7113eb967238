package app_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// move moves a record of the world's repository to another organization.
func (w *world) move(t *testing.T, id, from, to string) {
	t.Helper()
	body, put := []byte(nil), w.song.Put
	if w.lyric != nil {
		for _, r := range w.lyric.Records(from) {
			if r.SystemID == id {
				body, put = r.Body, w.lyric.Put
			}
		}
	} else if a, there := w.song.Analysis(id); there {
		body = a.Body
	}
	if err := put(to, bytes.ReplaceAll(body, []byte(`"`+from+`"`), []byte(`"`+to+`"`))); err != nil {
		t.Fatal(err)
	}
}

// setFutureVersions sets the documents of ids to versions of 90 s from now, as they have after a clock was set back.
func (w *world) setFutureVersions(ids ...string) {
	w.t.Helper()
	ctx, x := context.WithoutCancel(w.t.Context()), w.app.Index()
	for _, id := range ids {
		stored, found, err := x.Get(ctx, w.alias, id)
		if err != nil || !found {
			w.t.Fatalf("%s is not stored: %v", id, err)
		}
		item := core.BatchItem{ID: id, Version: core.Version(time.Now().Add(90 * time.Second).UnixNano())}
		batch := core.Batch{Index: w.alias}
		batch.Body, item.DocStart, item.DocEnd = x.Encode(nil, core.Write{ID: id, Version: item.Version, Document: stored.Source})
		item.End = len(batch.Body)
		batch.Items = []core.BatchItem{item}
		results, err := x.Write(ctx, batch)
		if err != nil || results[0].Outcome != core.OutcomeIndexed {
			w.t.Fatalf("writing %s: %+v, %v", id, results, err)
		}
	}
}

// TestMovedRecords: of the records that have moved to another organization, and were unpublished or deleted there, none
// stays in the index after one run, or after one trigger under any organization, whatever the versions of their documents.
func TestMovedRecords(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"song", "lenient song", "lyric"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := settings{song: testkit.SongConfig{Lenient: name == "lenient song"}}
			if name == "lyric" {
				set = tabular(set)
			}
			w := startWorld(t, set)
			fill, converged, hide, drop := w.fill, w.awaitConverged, w.song.SetState, w.song.Delete
			if name == "lyric" {
				fill, drop = w.addRecords, w.lyric.Remove
				hide = func(id, _ string) bool { return w.lyric.SetValid(id, false) }
			}
			ids := fill("O1", 20)
			fill("O2", 20)
			fill("O3", 20)
			w.run("", "", core.JobSucceeded)
			change := func(ids []string) {
				for _, id := range ids {
					w.move(t, id, "O1", "O2")
				}
				if !hide(ids[1], "UNPUBLISHED") || !drop(ids[2]) {
					t.Fatal("the record is not there")
				}
			}
			change(ids[:3])
			for i, organization := range []string{"O1", "O2", "O3"} {
				w.trigger(organization, ids[i])
			}
			if name == "lyric" {
				w.awaitLyricConverged()
			} else {
				converged(wait)
			}
			change(ids[3:6])
			w.run("O1", "", core.JobSucceeded)
			change(ids[6:9])
			w.setFutureVersions(ids[9:16]...)
			change(ids[9:12])
			hide(ids[12], "UNPUBLISHED")
			drop(ids[13])
			w.run("", "", core.JobSucceeded)
			if name == "lyric" { // a record that a page could not write is fetched alone
				w.awaitLyricConverged()
			} else {
				converged(wait)
			}
			if letters := w.deadLettersByRecord(); len(letters) != 0 {
				t.Errorf("dead letters: %s", fmt.Sprint(letters))
			}
		})
	}
}
