//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	indexplan "tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
)

// TestRolledOver: an index that is rolled over beneath a running tutti pauses its repository with the names of both indices, also after a
// restart. What /ready advises leaves the documents in one index, and the changes of the time between are in it.
func TestRolledOver(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"running": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{})
			ids := w.fill("S1", 30)
			w.run("", "", core.JobSucceeded)
			first := w.physical(w.alias)[0]
			rolled := "rolled-" + w.alias
			t.Cleanup(func() { w.engine.(*elasticEngine).call(http.MethodDelete, "/"+rolled, "") })
			w.byHand(http.MethodPost, "/"+w.alias+"/_rollover/"+rolled, "")
			w.put("S1", ids[0], `"changed":1`)
			w.song.SetState(ids[1], "UNPUBLISHED")
			for _, id := range append(ids[:2:2], "new") {
				if id == "new" {
					w.put("S1", id, `"changed":2`)
				}
				w.trigger("S1", id) // which the rolled over index gets, if it is not noticed before
			}
			if restart {
				w.stop()
				w.start()
			}
			names := []string{first, rolled}
			slices.Sort(names)
			reason := "the alias " + w.alias + " has more than one index: " + strings.Join(names, ", ")
			advice := "tutti mapping adopt " + code + " removes it from all but the oldest, and the repository is run again"
			w.eventually(wait, func() (bool, string) {
				a := w.ready()
				why := a.get("paused.0.reason").String()
				return strings.Contains(why, reason) && strings.Contains(why, advice), string(a.raw)
			})
			cfg, err := config.Parse([]byte(w.yaml()), nil)
			if err != nil {
				t.Fatal(err)
			}
			adopted, err := indexplan.Adopt(t.Context(), cfg, code)
			if err != nil || adopted.Index != first || !slices.Equal(adopted.Released, []string{rolled}) {
				t.Fatalf("%+v, %v", adopted, err)
			}
			w.awaitPaused(false)
			w.awaitConverged(wait)
			if now := w.physical(w.alias); !slices.Equal(now, []string{first}) {
				t.Errorf("the alias stands for %v", now)
			}
			w.run("", "?rebuild=true", core.JobSucceeded)
			w.awaitConverged(wait)
			w.eventually(wait, func() (bool, string) {
				a := w.ready()
				return a.get("status").String() == "healthy" && a.get("components.index").String() == "up", fmt.Sprint(string(a.raw))
			})
		})
	}
}
