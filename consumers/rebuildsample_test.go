package consumers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/internal/core"
)

// filledRebuild is a Rebuild whose other index is that of the world, changed by the cluster once all documents are there.
type filledRebuild struct {
	noRebuild
	engine   *engine
	change   func(source string) string
	finished *bool
}

func (filledRebuild) Begin(context.Context, string) error { return nil }

func (r filledRebuild) Check(context.Context, string) error {
	next := r.engine.next
	next.mu.Lock()
	defer next.mu.Unlock()
	for id, d := range next.docs {
		d.source = []byte(r.change(string(d.source)))
		next.docs[id] = d
	}
	return nil
}

func (r filledRebuild) Finish(context.Context, string) error {
	*r.finished = true
	return nil
}

func (filledRebuild) Discard(context.Context, string) (bool, error) { return false, nil }

// TestRebuildComparesContent: an index whose documents are not those of the records does not replace the one before, unless forced. One
// with other documents than before does, if they are those of the records: the records, or what is made of them, have changed.
func TestRebuildComparesContent(t *testing.T) {
	const damaged = `{"pipeline":true,"studyId":"A","repositories":[{"code":"song"}]}`
	keep := func(source string) string { return source }
	var calls atomic.Int64
	for name, c := range map[string]struct {
		change  func(source string) string
		before  string // of each document, if it differs
		several bool
		force   bool
		code    string
	}{
		"unchanged":      {change: keep},
		"changed":        {change: func(string) string { return damaged }, code: core.JobErrorContentDiffers},
		"forced":         {change: func(string) string { return damaged }, force: true},
		"records differ": {change: keep, before: `{"older":true,"studyId":"A","repositories":[{"code":"song"}]}`},
		"files":          {change: keep, several: true},
		"excluded field": {change: func(source string) string { return strings.Replace(source, `"analysisState":"PUBLISHED",`, "", 1) }},
		"one in fifty": {change: func(source string) string {
			if calls.Add(1)%50 == 0 {
				return damaged
			}
			return source
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				if c.several {
					w.split = threeLess
				}
				w.upstream.fill("A", 60)
				finished := false
				w.engine.next = newEngine()
				w.rebuild = filledRebuild{engine: w.engine, change: c.change, finished: &finished}
				for n := range 60 {
					if c.before != "" {
						w.engine.put(fmt.Sprintf("A-%04d", n), 1, c.before)
					}
				}
				w.boot(-1)
				state := core.JobSucceeded
				if c.code != "" {
					state = core.JobFailed
				}
				w.ended(w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true, Force: c.force}).JobID), state, c.code)
				if finished != (c.code == "") {
					t.Errorf("the index was replaced: %t", finished)
				}
			})
		})
	}
}
