//go:build services

package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// byHand changes the engine without tutti, and fails unless it agrees.
func (w *world) byHand(method, path, body string) {
	w.t.Helper()
	if status, answer := w.engine.(*elasticEngine).call(method, path, body); status != http.StatusOK {
		w.t.Errorf("%s %s: %d %s", method, path, status, answer)
	}
}

// physical returns the physical indices of an alias.
func (w *world) physical(alias string) []string {
	w.t.Helper()
	status, body := w.engine.(*elasticEngine).call(http.MethodGet, "/_alias/"+alias, "")
	if status != http.StatusOK {
		return nil
	}
	return slices.Sorted(maps.Keys(gjson.ParseBytes(body).Map()))
}

// handStep is a change by hand while an index is filled, and what follows.
type handStep struct {
	// change is the change by hand of a world whose serving and filled indices have these names.
	change func(w *world, live, filled string)
	// says is the error of the job, which contains it; "" for a job that succeeds. next is that of the next rebuild.
	says, next string
	// advised does what the last error advises.
	advised func(w *world, live, filled string)
}

func aliasAction(action, index, alias string) string {
	return fmt.Sprintf(`{%q:{"index":%q,"alias":%q}}`, action, index, alias)
}

func (w *world) aliases(actions ...string) {
	w.t.Helper()
	w.byHand(http.MethodPost, "/_aliases", `{"actions":[`+strings.Join(actions, ",")+`]}`)
}

// TestRebuildByHand: an index or alias of a rebuild that is changed by hand, while its pages are read or at its end, fails the job with the
// reason or is healed. Changes of records go on, no document that is served is lost, and the next rebuild succeeds once its advice was followed.
func TestRebuildByHand(t *testing.T) {
	t.Parallel()
	const failed = "the index was not replaced: "
	for name, s := range map[string]handStep{
		"deleted": {
			change: func(w *world, _, filled string) { w.byHand(http.MethodDelete, "/"+filled, "") },
			says:   failed + "the index that was being filled was deleted; start the rebuild again",
		},
		"closed": {
			change: func(w *world, _, filled string) { w.byHand(http.MethodPost, "/"+filled+"/_close", "") },
			says:   failed + "the index that was being filled takes no writes: ",
		},
		"blocked": {
			change: func(w *world, _, filled string) { w.byHand(http.MethodPut, "/"+filled+"/_block/write", "") },
			says:   failed + "the index that was being filled takes no writes: ",
		},
		"alias removed": {
			change:  func(w *world, _, filled string) { w.aliases(aliasAction("remove", filled, w.alias+"--next")) },
			says:    "that was being filled, or stands for another one too; start the rebuild again, and delete ",
			advised: func(w *world, _, filled string) { w.byHand(http.MethodDelete, "/"+filled, "") },
		},
		"alias moved to the serving index": {
			change: func(w *world, live, filled string) {
				w.aliases(aliasAction("remove", filled, w.alias+"--next"), aliasAction("add", live, w.alias+"--next"))
			},
			says: "stands for another one too; start the rebuild again, and delete ",
			next: "is also read by other aliases: ",
			advised: func(w *world, live, filled string) {
				w.aliases(aliasAction("remove", live, w.alias+"--next"))
				w.byHand(http.MethodDelete, "/"+filled, "")
			},
		},
		"alias added to the serving index": {
			change: func(w *world, live, _ string) { w.aliases(aliasAction("add", live, w.alias+"--next")) },
			says:   "stands for another one too; start the rebuild again, and delete ",
			next:   "; remove it from them: POST /_aliases",
			advised: func(w *world, live, filled string) {
				w.aliases(aliasAction("remove", live, w.alias+"--next"), aliasAction("remove", filled, w.alias+"--next"))
				w.byHand(http.MethodDelete, "/"+filled, "")
			},
		},
		"alias moved to an index of others": {
			change: func(w *world, _, filled string) {
				w.byHand(http.MethodPut, "/theirs-"+w.alias, "")
				w.aliases(aliasAction("remove", filled, w.alias+"--next"), aliasAction("add", "theirs-"+w.alias, w.alias+"--next"))
			},
			says: "stands for another one too; start the rebuild again, and delete ",
			next: "which tutti did not create; remove the alias ",
			advised: func(w *world, _, filled string) {
				w.aliases(aliasAction("remove", "theirs-"+w.alias, w.alias+"--next"))
				w.byHand(http.MethodDelete, "/theirs-"+w.alias, "") // it is there still
				w.byHand(http.MethodDelete, "/"+filled, "")
			},
		},
		"filled index rolled over": {
			change: func(w *world, _, _ string) {
				w.byHand(http.MethodPost, "/"+w.alias+"--next/_rollover/rolled-"+w.alias, "")
			},
			says: "stands for another one too; start the rebuild again, and delete ",
			next: "; remove it from them: POST /_aliases",
			advised: func(w *world, _, filled string) {
				w.aliases(aliasAction("remove", "rolled-"+w.alias, w.alias+"--next"), aliasAction("remove", filled, w.alias+"--next"))
				w.byHand(http.MethodDelete, "/rolled-"+w.alias+","+filled, "")
			},
		},
		"replaced by an index with the name of the alias": {
			change: func(w *world, _, filled string) {
				w.byHand(http.MethodDelete, "/"+filled, "")
				w.byHand(http.MethodPut, "/"+w.alias+"--next", "")
			},
			says:    failed + "the index that was being filled was deleted; start the rebuild again",
			next:    "which tutti needs for an alias; rebuilds need this name: delete the index ",
			advised: func(w *world, _, _ string) { w.byHand(http.MethodDelete, "/"+w.alias+"--next", "") },
		},
		"filled index read by others": {
			change: func(w *world, _, filled string) { w.aliases(aliasAction("add", filled, w.alias+"-portal")) },
		},
		"serving index deleted": {
			change: func(w *world, live, _ string) { w.byHand(http.MethodDelete, "/"+live, "") },
		},
	} {
		for _, at := range []string{"page", "end"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				s.run(t, at)
			})
		}
	}
}

func (s handStep) run(t *testing.T, at string) {
	var w *world
	var rebuilding atomic.Bool
	var live, filled string
	change := func() {
		if rebuilding.CompareAndSwap(true, false) {
			live, filled = w.physical(w.alias)[0], w.physical(w.alias + "--next")[0]
			s.change(w, live, filled)
		}
	}
	w = startWorld(t, settings{pageSize: 5, song: testkit.SongConfig{
		BeforePage: func(_ *testkit.SongServer, _ int, call testkit.PageCall) {
			if at == "page" && call.Offset > 5 {
				change()
			}
		},
		BeforeRecord: func(*testkit.SongServer, string) {
			if at == "end" {
				change()
			}
		},
	}})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	ids := w.fill("S1", 40)
	w.run("", "", core.JobSucceeded)
	serving := w.physical(w.alias)
	if at == "end" {
		w.song.SetState(ids[3], "UNPUBLISHED") // the filled index lacks it, so that it is requested then
	}
	rebuilding.Store(true)
	state := core.JobFailed
	if s.says == "" {
		state = core.JobSucceeded
	}
	job := w.run("", "?rebuild=true", state)
	if got := job.Get("error.message").String(); !strings.Contains(got, s.says) {
		t.Errorf("the error is %q, want %q", got, s.says)
	}
	w.put("S1", "after", `"a":1`)
	w.trigger("S1", "after")
	w.awaitConverged(wait)
	if now := w.physical(w.alias); state == core.JobFailed && !slices.Equal(now, serving) {
		t.Errorf("the alias stands for %v, before for %v", now, serving)
	}
	if s.next != "" {
		for range 2 {
			job = w.run("", "?rebuild=true", core.JobFailed)
			if got := job.Get("error.message").String(); !strings.Contains(got, s.next) {
				t.Errorf("the next error is %q, want %q", got, s.next)
			}
		}
		w.awaitConverged(wait)
	}
	if s.advised != nil {
		s.advised(w, live, filled)
	}
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitConverged(wait)
	if next := w.physical(w.alias + "--next"); next != nil {
		t.Errorf("%v is left", next)
	}
}

// TestClosedBeforeTheMove: the process is killed when it moves the alias to the index that it has filled, which then is closed: at the next
// start the job fails with the reason, changes reach the serving index, and the next rebuild succeeds.
func TestClosedBeforeTheMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{pageSize: 5})
	w.dropAtEnd(core.NextAlias(w.alias))
	w.dropAtEnd(core.PreviousAlias(w.alias))
	w.fill("S1", 20)
	process := w.startChild()
	w.run("", "", core.JobSucceeded)
	serving := w.physical(w.alias)
	moving := make(chan struct{}, 1)
	refuses := func(r *http.Request) bool {
		if r.Method != http.MethodPost || r.URL.Path != "/_aliases" {
			return false
		}
		select {
		case moving <- struct{}{}:
		default:
		}
		return true
	}
	w.engine.(*elasticEngine).items.refuses.Store(&refuses)
	id := w.startRun("", "?rebuild=true")
	<-moving
	process.kill()
	w.engine.(*elasticEngine).items.refuses.Store(nil)
	w.byHand(http.MethodPost, "/"+w.physical(w.alias + "--next")[0]+"/_close", "")
	w.start()
	job := w.awaitJob(id)
	if got := job.Get("error.message").String(); job.Get("state").String() != string(core.JobFailed) ||
		!strings.HasPrefix(got, "the index was not replaced: the index that was being filled takes no writes: ") || !strings.Contains(got, "; start the rebuild again") {
		t.Errorf("the job is %s", job.Raw)
	}
	if now := w.physical(w.alias); !slices.Equal(now, serving) {
		t.Errorf("the alias stands for %v, before for %v", now, serving)
	}
	w.put("S1", "after", `"a":1`)
	w.trigger("S1", "after")
	w.awaitConverged(wait)
	w.run("", "?rebuild=true", core.JobSucceeded)
	w.awaitConverged(wait)
}
