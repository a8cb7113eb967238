//go:build services

package app_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	indexplan "tutti/internal/app/compare"
	"tutti/internal/config"
	"tutti/internal/core"
)

// previous is the index before the last rebuild.
func (w *world) previous() string {
	w.t.Helper()
	found := w.physical(w.alias + "--previous")
	if len(found) != 1 {
		w.t.Fatalf("the index before the last rebuild: %v", found)
	}
	return found[0]
}

// awaitReason waits until the repository is paused for a reason that contains text.
func (w *world) awaitReason(text string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		return strings.Contains(a.get("paused.0.reason").String(), text), string(a.raw)
	})
}

// adopt is `tutti mapping adopt`.
func (w *world) adopt() {
	w.t.Helper()
	if err := w.tryAdopt(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryAdopt() error {
	w.t.Helper()
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = indexplan.Adopt(w.t.Context(), cfg, code)
	return err
}

// TestAdviceOfAliases: each of the ways out that a message names for an index or an alias that was changed by hand leads to a repository that
// is indexed again, and to the rebuild or the deletion that was refused.
func TestAdviceOfAliases(t *testing.T) {
	t.Parallel()
	refusedDrop := func(w *world) {
		w.t.Helper()
		w.aliases(aliasAction("add", w.previous(), w.alias+"-portal"))
		a := w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusConflict)
		if want := "remove them from it first, or the alias " + w.alias + "--previous to keep it"; a.get("hint").String() != want {
			w.t.Errorf("%s, want the hint %q", a.raw, want)
		}
	}
	aliasMissing := func(w *world, live string) {
		w.t.Helper()
		w.aliases(aliasAction("remove", live, w.alias))
		w.awaitReason("the alias " + w.alias + " is missing, but an index of it exists; add the alias " + w.alias + " to " + live +
			", or delete that index to have it created and filled again")
	}
	for name, follow := range map[string]func(w *world, live string){
		"previous index read by others, which do so no more": func(w *world, _ string) {
			refusedDrop(w)
			w.aliases(aliasAction("remove", w.previous(), w.alias+"-portal"))
			w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)
		},
		"previous index read by others, which is kept": func(w *world, _ string) {
			refusedDrop(w)
			kept := w.previous()
			w.aliases(aliasAction("remove", kept, w.alias+"--previous"))
			w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNotFound)
			w.byHand(http.MethodDelete, "/"+kept, "") // it is there still
		},
		"alias missing, added":                 func(w *world, live string) { aliasMissing(w, live); w.aliases(aliasAction("add", live, w.alias)) },
		"alias missing, index deleted instead": func(w *world, live string) { aliasMissing(w, live); w.byHand(http.MethodDelete, "/"+live, "") },
		"index with the name of the alias": func(w *world, live string) {
			w.stop()
			w.byHand(http.MethodDelete, "/"+live, "")
			w.byHand(http.MethodPut, "/"+w.alias, `{"settings":{"number_of_replicas":0}}`)
			w.start()
			w.awaitReason("tutti mapping plan " + code + " shows the way out; tutti mapping adopt " + code + " makes the index an alias of the same documents")
			next := w.mustRequest(http.MethodGet, runPath("")+"/mapping", http.StatusOK).get("next").Array()
			if len(next) != 2 || next[0].String() != "tutti mapping adopt "+code {
				w.t.Fatalf("the plan says %s", next)
			}
			w.adopt()
			w.awaitPaused(false)
			w.doAdvised(next[1].String())
			if a := w.mustRequest(http.MethodGet, runPath("")+"/mapping", http.StatusOK); a.get("difference").Bool() {
				w.t.Errorf("the plan says %s", a.raw)
			}
		},
		"alias without an index for writes": func(w *world, live string) {
			writes := func(is bool) {
				w.byHand(http.MethodPost, "/_aliases", fmt.Sprintf(`{"actions":[{"add":{"index":%q,"alias":%q,"is_write_index":%t}}]}`, live, w.alias, is))
			}
			writes(false)
			w.trigger("S1", "A")
			w.awaitReason(" has no index to write to; add the alias to its index with is_write_index: true (POST /_aliases)")
			writes(true)
		},
		"closed index": func(w *world, live string) {
			w.byHand(http.MethodPost, "/"+live+"/_close", "")
			w.trigger("S1", "A")
			w.awaitReason(" is closed; open it: POST /" + w.alias + "/_open")
			w.byHand(http.MethodPost, "/"+w.alias+"/_open", "")
		},
		"index with the name of the alias, which is left": func(w *world, live string) {
			w.stop()
			w.byHand(http.MethodDelete, "/"+live, "")
			w.byHand(http.MethodPut, "/"+w.alias, `{"settings":{"number_of_replicas":0}}`)
			w.start()
			w.awaitReason("tutti mapping adopt " + code + " makes the index an alias of the same documents")
			w.renameIndex("-other")
		},
		"data stream with the name of the alias": func(w *world, live string) {
			if !w.engine.openSearch() {
				return // the distribution of Elasticsearch for tests lacks the module of data streams
			}
			w.stop()
			w.byHand(http.MethodDelete, "/"+live, "")
			w.byHand(http.MethodPut, "/_index_template/"+w.alias, fmt.Sprintf(`{"index_patterns":[%q],"data_stream":{},"priority":%d}`, w.alias, 1000+os.Getpid()%1000))
			stream := w.alias
			w.byHand(http.MethodPut, "/_data_stream/"+stream, "")
			w.t.Cleanup(func() {
				w.engine.(*elasticEngine).call(http.MethodDelete, "/_data_stream/"+stream, "")
				w.engine.(*elasticEngine).call(http.MethodDelete, "/_index_template/"+stream, "")
			})
			w.start()
			w.awaitReason("a data stream has the name " + stream + ", which tutti needs for an alias; choose another indexName")
			if next := w.mustRequest(http.MethodGet, runPath("")+"/mapping", http.StatusOK).get("next"); next.Raw != `["choose another indexName"]` {
				w.t.Errorf("the plan says %s", next.Raw)
			}
			w.renameIndex("-other")
		},
		"index with the name of the alias, whose new name is taken": func(w *world, live string) {
			w.stop()
			w.byHand(http.MethodDelete, "/"+live, "")
			w.byHand(http.MethodPut, "/"+w.alias, `{"settings":{"number_of_replicas":0}}`)
			_, body := w.engine.(*elasticEngine).call(http.MethodGet, "/"+w.alias+"/_settings", "")
			created := gjson.GetBytes(body, w.alias+".settings.index.creation_date").Int()
			taken := w.alias + "-" + time.UnixMilli(created).UTC().Format("20060102150405")
			w.byHand(http.MethodPut, "/"+taken, "")
			if err := w.tryAdopt(); core.HintOf(err) != "delete it, or choose another indexName" {
				w.t.Errorf("adopt: %v, %q", err, core.HintOf(err))
			}
			w.byHand(http.MethodDelete, "/"+taken, "")
			w.adopt()
			w.start()
		},
		"alias of several indices, removed by hand": func(w *world, live string) {
			w.byHand(http.MethodPut, "/theirs-"+w.alias, `{"settings":{"number_of_replicas":0},"aliases":{"`+w.alias+`":{}}}`)
			w.stop()
			w.start()
			w.awaitReason("has more than one index: " + live + ", theirs-" + w.alias)
			w.aliases(aliasAction("remove", "theirs-"+w.alias, w.alias))
			w.byHand(http.MethodDelete, "/theirs-"+w.alias, "")
		},
		"name of the alias for the previous index taken": func(w *world, _ string) {
			w.mustRequest(http.MethodDelete, runPath("")+"/previous", http.StatusNoContent)
			w.byHand(http.MethodPut, "/"+w.alias+"--previous", "")
			job := w.run("", "?rebuild=true", core.JobFailed)
			if said := job.Get("error.message").String(); !strings.Contains(said, "rebuilds need this name: delete the index "+w.alias+"--previous") {
				w.t.Errorf("the job is %s", job.Raw)
			}
			w.byHand(http.MethodDelete, "/"+w.alias+"--previous", "")
		},
		"template that adds an alias": func(w *world, _ string) {
			template := func(aliases string) {
				w.byHand(http.MethodPut, "/_index_template/"+w.alias, fmt.Sprintf(`{"index_patterns":["%s-*"],"priority":%d,"template":{"aliases":{%s}}}`,
					w.alias, 1000+os.Getpid()%1000, aliases))
			}
			template(`"` + w.alias + `-portal":{}`)
			w.t.Cleanup(func() { w.engine.(*elasticEngine).call(http.MethodDelete, "/_index_template/"+w.alias, "") })
			job := w.run("", "?rebuild=true", core.JobFailed)
			if said := job.Get("error.message").String(); !strings.Contains(said, "the index template "+w.alias+" adds the alias "+w.alias+"-portal") ||
				!strings.Contains(said, "; remove the alias from the template; ") {
				w.t.Errorf("the job is %s", job.Raw)
			}
			template("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorld(t, settings{})
			w.dropAtEnd(core.NextAlias(w.alias))
			w.dropAtEnd(core.PreviousAlias(w.alias))
			ids := w.fill("S1", 10)
			w.run("", "", core.JobSucceeded)
			w.run("", "?rebuild=true", core.JobSucceeded)
			follow(w, w.physical(w.alias)[0])
			w.put("S1", ids[0], `"changed":1`)
			w.trigger("S1", ids[0])
			w.awaitPaused(false)
			if strings.Contains(name, " with the name of the alias") { // the index is empty
				w.dropAtEnd(core.NextAlias(w.alias))
				w.dropAtEnd(core.PreviousAlias(w.alias))
				w.run("", "", core.JobSucceeded)
			}
			w.awaitConverged(wait)
			w.run("", "?rebuild=true", core.JobSucceeded)
			w.awaitConverged(wait)
		})
	}
}

// TestAdviceOfSharedAliases: where an index has the name of the alias that repositories share, whoever does what /ready advises, which is to
// follow `tutti mapping plan`, has the documents of all of them.
func TestAdviceOfSharedAliases(t *testing.T) {
	t.Parallel()
	p := startSharing(t, "")
	p.has("A1", "2024-01-01T00:00:00Z", "female", 0, 1)
	p.stop()
	p.byHand(http.MethodDelete, "/"+p.physical(p.alias)[0], "")
	p.byHand(http.MethodPut, "/"+p.alias, `{"settings":{"number_of_replicas":0}}`)
	p.start()
	for _, repository := range []string{code, otherCode} {
		p.eventually(wait, func() (bool, string) {
			said := p.ready().get("paused").String()
			return strings.Contains(said, "; tutti mapping plan "+repository+" shows the way out\""), said
		})
		next := p.mustRequest(http.MethodGet, "/index/repository/"+repository+"/mapping", http.StatusOK).get("next")
		if next.Raw != `["choose another indexName for all repositories that share this one"]` {
			t.Errorf("the plan of %s says %s", repository, next.Raw)
		}
	}
	p.renameIndex("-other")
	p.runOf(code, "")
	p.runOf(otherCode, "")
	p.awaitFound(map[string]string{"A1": "female " + code + " " + otherCode})
}
