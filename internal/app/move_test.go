package app_test

import (
	"bytes"
	"fmt"
	"testing"

	"tutti/internal/core"
	"tutti/internal/testkit"
)

// move gives a record of the world's repository to another organization.
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

// TestMovedRecords: of the records that have moved to another organization, and were unpublished or deleted there, none
// stays in the index after one run, or after one trigger under any organization.
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
			fill, converged, hide, drop := w.fill, w.converges, w.song.SetState, w.song.Delete
			if name == "lyric" {
				fill, drop = w.enrol, w.lyric.Remove
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
				w.lyricConverges()
			} else {
				converged(wait)
			}
			change(ids[3:6])
			w.run("O1", "", core.JobSucceeded)
			change(ids[6:9])
			w.run("", "", core.JobSucceeded)
			if name == "lyric" {
				w.lyricConverged()
			} else {
				w.converged()
			}
			if letters := w.letters(); len(letters) != 0 {
				t.Errorf("dead letters: %s", fmt.Sprint(letters))
			}
		})
	}
}
