package consumers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"tutti/consumers"
	"tutti/internal/core"
	"tutti/internal/index/kinds"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/kindstest"
)

// errDecided ends a rebuild once it has decided.
var errDecided = core.NewError(core.CodeInvalid, "the rebuild has decided")

// decidingRebuild is a Rebuild that only decides the types of fields.
type decidingRebuild struct {
	noRebuild
	given kinds.Given
	types *map[string]mapping.Type
}

func (r decidingRebuild) Begin(ctx context.Context, _ string, counts consumers.Counts) error {
	counted, err := counts(ctx, func(counts core.Kinds, gone int64) string { return kinds.Uncertain(counts, gone, r.given) })
	if err != nil {
		return err
	}
	*r.types = typesOf(counted, r.given)
	return errDecided
}

func typesOf(counted core.Kinds, given kinds.Given) map[string]mapping.Type {
	types := map[string]mapping.Type{}
	for path, d := range kinds.Decide(counted, given).All() {
		types[path] = d.Type
	}
	return types
}

// twoOrThree makes two documents of a record, and a third one in every other revision.
func twoOrThree(rec core.Record, each func(id string, document []byte) error) error {
	rev, v := gjson.GetBytes(rec.Body, "rev").Int(), gjson.GetBytes(rec.Body, "v").Raw
	for i := range 2 + rev%2 {
		id := fmt.Sprintf("%s/%d", rec.ID, i)
		err := each(id, fmt.Appendf(nil, `{"id":%q,"record":%q,"studyId":%q,"f%d":%s,"repositories":[{"code":"song"}]}`, id, rec.ID, rec.Organization, i%2, v))
		if err != nil {
			return err
		}
	}
	return nil
}

// listed returns the kinds of all records as the list has them now.
func (w *world) listed() core.Kinds {
	c := kinds.NewCounter(nil, core.MaxKindsBytes)
	records := int64(0)
	for _, r := range slices.Concat(slices.Collect(maps.Values(w.upstream.lists))...) {
		if r.state != published {
			continue
		}
		records++
		c.Record()
		if w.split == nil {
			c.Add([]byte(r.document()))
			continue
		}
		_ = w.split(core.Record{ID: r.id, Organization: r.org, Body: []byte(r.body())}, func(_ string, document []byte) error {
			c.Add(document)
			return nil
		})
	}
	return c.Take(records)
}

// TestRebuildDecidesAsFromTheList: whatever has changed during the run that counted and since, with a notification, a rebuild decides the types
// that the list decides, and in many cases without reading it.
func TestRebuildDecidesAsFromTheList(t *testing.T) {
	t.Parallel()
	var changed, without atomic.Int64
	t.Run("sets", func(t *testing.T) {
		for seed := range uint64(kindstest.Cases(t, 400)) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					edits, read := decideOnce(t, w, rand.New(rand.NewPCG(seed, 37)))
					if edits > 0 {
						changed.Add(1)
						if !read {
							without.Add(1)
						}
					}
				})
			})
		}
	})
	if changed.Load()*1/4 > without.Load() {
		t.Errorf("of %d rebuilds after changes only %d did not read the list", changed.Load(), without.Load())
	}
	t.Logf("%d rebuilds after changes, %d without reading the list", changed.Load(), without.Load())
}

// decideOnce returns how many records were changed, and whether the rebuild has read the list.
func decideOnce(t *testing.T, w *world, rng *rand.Rand) (edits int, read bool) {
	set := kindstest.Generate(rng)
	value := func() string { return set[rng.IntN(1+rng.IntN(len(set)))] }
	w.pageSize = 1 + rng.IntN(6)
	if rng.IntN(3) == 0 {
		w.split = twoOrThree
	}
	w.upstream.fill("A", rng.IntN(60))
	for i := range w.upstream.lists["A"] {
		w.upstream.lists["A"][i].v = value()
	}
	w.counting(core.MaxKindsBytes)
	rejected := map[string]bool{}
	w.engine.item = func(id string, op core.WriteOp, _ []byte) (core.Result, bool) {
		return core.Result{Outcome: core.OutcomeRejected, Type: "document_parsing_exception"}, op == core.OpIndex && rejected[id]
	}
	reject := func() {
		w.engine.mu.Lock()
		defer w.engine.mu.Unlock()
		for range rng.IntN(4) {
			rejected[fmt.Sprintf("A-%04d%s", rng.IntN(60), map[bool]string{true: "/0"}[w.split != nil])] = rng.IntN(2) == 0
		}
	}
	edit := func(most int, notified bool) {
		for range rng.IntN(most) {
			edits++
			id := fmt.Sprintf("A-%04d", rng.IntN(70))
			switch v := value(); rng.IntN(4) {
			case 0:
				w.upstream.change("A", func(l []record) []record {
					for i := range l {
						if l[i].id == id {
							return append(l[:i], l[i+1:]...)
						}
					}
					return append(l, record{id: id, org: "A", state: published, v: v})
				})
			case 1:
				w.upstream.edit("A", id, func(r *record) {
					r.state = map[bool]string{true: published, false: "UNPUBLISHED"}[r.state != published]
				})
			default:
				w.upstream.edit("A", id, func(r *record) { r.v, r.rev = v, r.rev+rng.IntN(2) })
			}
			if notified {
				w.index("A", id)
			}
		}
	}
	given := kinds.Given{}
	if rng.IntN(2) == 0 {
		given.Live = &mapping.Field{Type: mapping.Object, Properties: map[string]*mapping.Field{"v": {Type: mapping.Date}, "f0": {Type: mapping.Date}}}
	}
	types := map[string]mapping.Type{}
	w.rebuild = decidingRebuild{given: given, types: &types}
	w.boot(-1)
	if rng.IntN(2) == 0 && w.split == nil {
		w.job(w.run("", true))
		edit(6, false)
		w.difference = true
	}
	reject()
	edits = 0
	during, first := rng.IntN(20), len(w.upstream.pageCalls())
	w.upstream.onPage = func(_ context.Context, call pageCall) error {
		if call.n == first+during {
			edit(4, true)
			for range rng.IntN(2) { // processed before the end of the run
				eventually(t, "the requests", func() bool { return len(w.broker.PendingRecords("song", "")) == 0 })
			}
		}
		return nil
	}
	w.job(w.run("", true))
	w.upstream.onPage = nil
	reject()
	if rng.IntN(4) > 0 {
		edit(1+rng.IntN(8), true)
		w.idle()
	}
	ended := atomic.Bool{}
	if rng.IntN(3) == 0 { // one of the next requests waits while the rebuild begins
		var calls atomic.Int64
		w.upstream.onRecord = func(context.Context, string, string) error {
			if calls.Add(1) == 1 {
				eventually(t, "the rebuild", ended.Load)
			}
			return nil
		}
		if edit(3, true); w.broker.size() > 0 {
			eventually(t, "the request", func() bool { return calls.Load() > 0 })
		} else {
			w.upstream.onRecord = nil
		}
	}
	job := w.publish(core.Request{Scope: core.ScopeRepository, Rebuild: true}).JobID
	end := w.await(job)
	ended.Store(true)
	w.idle()
	if end.Error == nil || !strings.Contains(end.Error.Message, "decided") {
		t.Fatalf("the rebuild ended as %+v", end)
	}
	want := typesOf(w.listed(), given)
	if !maps.Equal(types, want) {
		t.Errorf("split %t, difference %t, %d changes, note %q (-from the list +got):\n%s", w.split != nil, w.difference, edits, end.Note, cmp.Diff(want, types))
	}
	return edits, end.Note != ""
}
