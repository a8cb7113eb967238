//go:build services

package app_test

import (
	"net/http"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
)

// TestUnsuitableIndex: an alias that is moved beneath a running tutti to an index that does not return its documents pauses the repository; /ready
// and the check name the index and what to do. Once the alias is back, what was written to the other index is written again.
func TestUnsuitableIndex(t *testing.T) {
	t.Parallel()
	w := startWorld(t, settings{})
	ids := w.fill("S1", 30)
	w.run("", "", core.JobSucceeded)
	first, other := w.physical(w.alias)[0], "unsuitable-"+w.alias
	t.Cleanup(func() { w.engine.(*elasticEngine).call(http.MethodDelete, "/"+other, "") })
	w.byHand(http.MethodPut, "/"+other, `{"mappings":{"_source":{"enabled":false}}}`)
	move := func(from, to string) {
		w.byHand(http.MethodPost, "/_aliases", `{"actions":[{"remove":{"index":"`+from+`","alias":"`+w.alias+`"}},
			{"add":{"index":"`+to+`","alias":"`+w.alias+`","is_write_index":true}}]}`)
	}
	move(first, other)
	w.put("S1", ids[0], `"changed":1`)
	w.trigger("S1", ids[0]) // which the other index gets, if it is not noticed before
	reason := "the index " + other + " of the alias " + w.alias + " cannot be used: its _source is disabled"
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		why := a.get("paused.0.reason").String()
		return strings.Contains(why, reason) && strings.Contains(why, "move the alias away"), string(a.raw)
	})
	cfg, err := config.Parse([]byte(w.yaml()), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range check.Run(t.Context(), cfg, check.Options{}).Findings {
		found = found || f.Status == check.StatusFail && strings.Contains(f.Message, other+", which cannot be used: its _source is disabled")
	}
	if !found {
		t.Error("the check does not name the index")
	}
	move(other, first)
	w.awaitPaused(false)
	w.awaitConverged(wait)
}
