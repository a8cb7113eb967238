package consumers_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/consumers"
	"tutti/internal/core"
)

// filledRebuild is a Rebuild whose other index is that of the world.
type filledRebuild struct {
	noRebuild
	check    func()
	finished *bool
}

func (filledRebuild) Begin(context.Context, string, consumers.Counts) error { return nil }

func (r filledRebuild) Check(context.Context, string) error {
	r.check()
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
	const older = `{"older":true,"studyId":"A","repositories":[{"code":"song"}]}`
	var calls atomic.Int64
	for name, c := range map[string]struct {
		change  func(source string) string // the pipeline of the cluster, if there is one
		before  string                     // of each document, if it differs
		edited  int                        // records that change, without a notification, once all pages are written
		records int                        // 60 if 0
		several bool
		force   bool
		code    string
	}{
		"unchanged":      {},
		"changed":        {change: func(string) string { return damaged }, code: core.JobErrorContentDiffers},
		"forced":         {change: func(string) string { return damaged }, force: true},
		"records differ": {before: older},
		"files":          {several: true},
		"edited":         {edited: 60, before: older},
		"one edited":     {edited: 1, records: 1, before: older},
		"files edited":   {edited: 2, records: 4, several: true},
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
				records := cmp.Or(c.records, 60)
				w.upstream.fill("A", records)
				finished, edited := false, false
				w.engine.next = newEngine()
				w.engine.next.pipeline = c.change
				w.rebuild = filledRebuild{finished: &finished, check: func() {
					if edited || len(w.engine.next.live()) < records {
						return
					}
					edited = true
					for n := range c.edited {
						w.upstream.edit("A", fmt.Sprintf("A-%04d", n), func(r *record) { r.rev++ })
					}
				}}
				for n := range records {
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
				if c.edited > 0 && !edited {
					t.Error("nothing was edited")
				}
			})
		})
	}
}

// TestRebuildSampleWithoutOrder: a sampled document whose arrays have another order than those of its record is requested once more only if
// the order counts.
func TestRebuildSampleWithoutOrder(t *testing.T) {
	for name, c := range map[string]struct {
		listed, single string
		requests       int
	}{
		"objects": {`[{"i":1},{"i":2}]`, `[{"i":2},{"i":1}]`, 0},
		"values":  {`[1,2]`, `[2,1]`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.unordered = []string{"v"}
				w.upstream.fill("A", 1)
				w.upstream.edit("A", "A-0000", func(r *record) { r.v = c.listed })
				finished := false
				w.engine.next = newEngine()
				w.rebuild = filledRebuild{finished: &finished, check: func() {
					if w.engine.next.has("A-0000") {
						w.upstream.edit("A", "A-0000", func(r *record) { r.v = c.single })
					}
				}}
				w.engine.put("A-0000", 1, `{"older":true,"studyId":"A","repositories":[{"code":"song"}]}`)
				w.boot(-1)
				w.ended(w.job(w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID), core.JobSucceeded, "")
				if n := len(w.broker.published(core.ScopeRecord)); n != c.requests || !finished {
					t.Errorf("%d records were requested, want %d; the index was replaced: %t", n, c.requests, finished)
				}
			})
		})
	}
}
